# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The schema: brought up to date, and checked, by alembic."""

import contextlib

from alembic import command
from alembic import config
from alembic.runtime import migration
from alembic import script
import sqlalchemy as sa

from triggerlib import exceptions
from triggerlib.storage.sql import models

#: Names the lock that keeps two upgrades apart; any number will do.
_LOCK = 7134268
#: Seconds to wait for another upgrade on MySQL.
_PATIENCE = 600
#: Where the revision stands: not in alembic's usual table, which other
#: services in the same database may have.
VERSION_TABLE = 'triggerlib_version'


def configuration(connection=None):
    """Return alembic's configuration for the package's migrations.

    :param connection: the connection that they run on
    """
    alembic = config.Config()
    alembic.set_main_option(
        'script_location', 'triggerlib.storage.sql:migrations')
    alembic.attributes['connection'] = connection
    return alembic


def upgrade(engine, revision='head') -> None:
    """Bring the schema up to a revision.

    Of several processes that do this at once, one does it and the others
    wait for it.

    :raises SchemaError: the schema is of a newer release, or there are
        tables where the first ones would go
    """
    with engine.connect() as connection, _alone(connection):
        current = _current(connection)
        if current is None:
            _check_room(connection)
        elif current not in _known():
            raise _too_new(current)
        command.upgrade(configuration(connection), revision)


def downgrade(engine, revision) -> None:
    """Take the schema back to a revision; ``base`` drops everything."""
    with engine.connect() as connection, _alone(connection):
        command.downgrade(configuration(connection), revision)


def check(engine) -> None:
    """Refuse a schema that this release cannot work with.

    :raises SchemaError: it says what to do
    """
    head, *_ = known = _known()
    with engine.connect() as connection:
        current = _current(connection)
    if current == head:
        return
    if current is None:
        raise exceptions.SchemaError(
            'the database has no schema yet; run "triggerlib db upgrade"')
    if current not in known:
        raise _too_new(current)
    raise exceptions.SchemaError(
        f'the schema of the database is at revision {current}, and this '
        f'release needs {head}; run "triggerlib db upgrade"')


def _check_room(connection):
    """Refuse a database that has our tables, and no revision of ours.

    Whose they are cannot be told, so they are neither used nor dropped.
    """
    found = models.metadata.tables.keys() & set(
        sa.inspect(connection).get_table_names())
    if found:
        raise exceptions.SchemaError(
            f'the database has tables of these names already, and no '
            f'upgrade made them to its end: {", ".join(sorted(found))}; '
            f'where another service has them, give triggerlib a database '
            f'of its own; where an upgrade was interrupted, drop them and '
            f'run "triggerlib db upgrade" again')


def _known():
    """Return the revisions that this release knows, newest first."""
    scripts = script.ScriptDirectory.from_config(configuration())
    return [one.revision for one in scripts.walk_revisions()]


def _current(connection):
    """Return the revision of a database, None where it has no schema."""
    return migration.MigrationContext.configure(
        connection, opts={'version_table': VERSION_TABLE}
    ).get_current_revision()


def _too_new(revision):
    return exceptions.SchemaError(
        f'the schema of the database is at revision {revision}, which this '
        f'release does not know: a newer release of triggerlib made it; '
        f'upgrade triggerlib')


@contextlib.contextmanager
def _alone(connection):
    """Keep other upgrades out, and commit at the end."""
    name = connection.dialect.name
    if name == 'postgresql':
        with connection.begin():
            connection.execute(
                sa.text('SELECT pg_advisory_xact_lock(:lock)'),
                {'lock': _LOCK})
            yield
    elif name in ('mysql', 'mariadb'):
        # Each statement of the schema is committed by itself there.
        # Of this database: the lock's name is the server's.
        lock = {'lock': f'triggerlib-{_LOCK}', 'patience': _PATIENCE}
        got = connection.execute(sa.text(
            "SELECT GET_LOCK(CONCAT(:lock, '-', MD5(DATABASE())), "
            ":patience)"), lock).scalar_one()
        connection.commit()
        if got != 1:
            raise exceptions.StorageBusy(
                f'another upgrade of the schema has run for {_PATIENCE} s')
        try:
            with connection.begin():
                yield
        finally:
            connection.execute(sa.text(
                "SELECT RELEASE_LOCK(CONCAT(:lock, '-', "
                "MD5(DATABASE())))"), {'lock': lock['lock']})
            connection.commit()
    else:
        with connection.begin():
            yield
