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

"""Engines: how each backend is connected to, and what its errors mean."""

import contextlib
import threading

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa
from sqlalchemy import pool

from triggerlib import exceptions
from triggerlib import opts

#: Execution option of a connection whose transaction will write.
WRITE = 'triggerlib_write'

#: SQLITE_BUSY and SQLITE_LOCKED.
_SQLITE_BUSY = (5, 6)
#: SQLSTATEs: serialization failure, deadlock, lock not available, too many
#: connections, and a server that stops, crashed or starts.
_BUSY_STATES = ('40001', '40P01', '55P03', '53300', '57P01', '57P02',
                '57P03')
#: MySQL's: too many connections (1040, 1203), a server that stops, a
#: connection that was ended by an administrator, a commit that failed, as it
#: does in a Galera cluster when the server loses the others.
_BUSY_NUMBERS = (1040, 1203, 1053, 1927, 1180)
_UNDEFINED_TABLE = '42P01'
_NO_SUCH_TABLE = 1146


def create(conf, text) -> sa.Engine:
    """Return an engine for a URL; nothing is connected to.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param text: the ``connection`` option
    :raises PluginError: the URL cannot be read, or names a Python driver
        that is not installed
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # What they say has parts of the URL, and so maybe of a password.
        raise exceptions.PluginError(
            'the option connection is not a database URL; characters like '
            '@, : and / in a password are written as %40, %3A and %2F'
        ) from None
    try:
        return _create(conf, url)
    except (ImportError, sa.exc.NoSuchModuleError) as error:
        raise exceptions.PluginError(
            f'the option connection asks for {url.drivername}, which is not '
            f'installed: {error}') from error
    except sa.exc.ArgumentError:
        raise exceptions.PluginError(
            'the option connection names a host, and SQLite has files: '
            'sqlite:///relative/path or sqlite:////absolute/path') from None


def _create(conf, url):
    backend = url.get_backend_name()
    if backend == 'sqlite':
        return _sqlite(conf, url)
    if backend == 'postgresql':
        if '+' not in url.drivername:
            url = url.set(drivername='postgresql+psycopg')
        isolate = ('SET SESSION CHARACTERISTICS AS TRANSACTION '
                   'ISOLATION LEVEL READ COMMITTED')
        options = {}
    else:
        if not url.database:
            raise exceptions.PluginError(
                'the option connection names no database: '
                'mysql://user:password@host/database')
        if '+' not in url.drivername:
            url = url.set(drivername='mysql+pymysql')
        if 'charset' not in url.query:
            url = url.update_query_dict({'charset': 'utf8mb4'})
        isolate = ('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
        options = {'mysql_sql_mode': 'TRADITIONAL'}
    engine = engines.create_engine(
        url, max_retries=0, max_pool_size=20, max_overflow=20, **options)

    @sa.event.listens_for(engine, 'connect')
    def connect(connection, record):
        cursor = connection.cursor()
        cursor.execute(isolate)
        cursor.close()
        connection.commit()

    return engine


def _sqlite(conf, url):
    group = conf[opts.GROUP]
    in_memory = url.database in (None, '', ':memory:')
    # oslo.db would open the file anew for each transaction.
    engine = sa.create_engine(
        url,
        poolclass=pool.StaticPool if in_memory else pool.QueuePool,
        connect_args={'timeout': group.sqlite_busy_timeout,
                      'check_same_thread': False,
                      'cached_statements': 512})
    exc_filters.register_engine(engine)

    @sa.event.listens_for(engine, 'connect')
    def connect(connection, record):
        # sqlite3 would begin transactions of its own accord.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute('PRAGMA foreign_keys = ON')
        if not in_memory:
            cursor.execute('PRAGMA journal_mode = WAL')
        cursor.execute(f'PRAGMA synchronous = {group.sqlite_synchronous}')
        cursor.close()

    @sa.event.listens_for(engine, 'begin')
    def begin(connection):
        # A transaction that began by reading could not go on to write after
        # another one has.
        write = connection.get_execution_options().get(WRITE, True)
        connection.exec_driver_sql(
            'BEGIN IMMEDIATE' if write else 'BEGIN DEFERRED')

    return engine


class Turns:
    """Orders the transactions of this process, where that is needed.

    SQLite has one writer at a time, and those that wait look again at
    growing intervals: in one process a lock is fairer. A database in memory
    has one connection, so that readers take turns as well. Other backends
    need no lock.

    :param engine: a SQLAlchemy engine
    """

    def __init__(self, engine):
        on_sqlite = engine.dialect.name == 'sqlite'
        self._lock = threading.Lock() if on_sqlite else None
        self._reads = isinstance(engine.pool, pool.StaticPool)
        self._holder = None

    @contextlib.contextmanager
    def take(self, write):
        """Wait for a turn, and keep it.

        :raises StorageError: this thread has one already
        """
        if self._lock is None or not (write or self._reads):
            yield
            return
        if self._holder == threading.get_ident():
            raise exceptions.StorageError(
                'this thread has begun a unit of work already, and would '
                'wait for itself')
        with self._lock:
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None


@contextlib.contextmanager
def errors():
    """Raise the package's errors for the databases'.

    :raises StorageBusy: what was done may succeed when it is done again
    :raises StorageError: it will not
    """
    try:
        yield
    except (db_exc.DBError, sa.exc.DBAPIError) as error:
        raise _meaning(error)(_text(error)) from error
    except db_exc.DBInvalidUnicodeParameter as error:
        # The only one of oslo.db's that is not a DBError.
        raise exceptions.StorageError(
            'a text is not Unicode, so that the database does not take it'
        ) from error
    except sa.exc.TimeoutError as error:
        # No connection of the pool's came free.
        raise exceptions.StorageBusy(_text(error)) from error


def _meaning(error):
    """Return the class of the package's error for a database's."""
    if isinstance(error, (db_exc.DBDeadlock, db_exc.DBConnectionError)):
        return exceptions.StorageBusy
    if isinstance(error, db_exc.DBDuplicateEntry):
        # Another transaction was faster with this event: it is found when
        # this one is run again.
        return (exceptions.StorageBusy
                if any('message_id' in one for one in error.columns)
                else exceptions.StorageError)
    if isinstance(error, db_exc.DBNonExistentTable):
        return _no_table
    if isinstance(error, db_exc.DBNonExistentDatabase):
        return _no_database
    if isinstance(error, db_exc.DBError):
        error = error.inner_exception
    if getattr(error, 'connection_invalidated', False):
        return exceptions.StorageBusy
    return _meaning_of_code(error, getattr(error, 'orig', None))


def _meaning_of_code(error, original):
    """Tell apart what oslo.db does not, by the databases' codes."""
    code = getattr(original, 'sqlite_errorcode', None)
    if code is not None:
        return (exceptions.StorageBusy if code & 0xff in _SQLITE_BUSY
                else exceptions.StorageError)
    state = getattr(original, 'sqlstate', None)
    number = original.args[0] if getattr(original, 'args', ()) else None
    if state == _UNDEFINED_TABLE or number == _NO_SUCH_TABLE:
        return _no_table
    if state in _BUSY_STATES or number in _BUSY_NUMBERS:
        return exceptions.StorageBusy
    if (state is None and isinstance(number, str)
            and isinstance(error, sa.exc.OperationalError)):
        # psycopg knows no code where there is no connection.
        return exceptions.StorageBusy
    return exceptions.StorageError


def _no_database(text):
    return exceptions.StorageError(
        f'the database has to be created first: {text}')


def _no_table(text):
    return exceptions.SchemaError(
        f'{text}; if the schema was never made, run "triggerlib db upgrade"')


def _text(error):
    """Return what the database said, without the statement's values."""
    inner = getattr(error, 'inner_exception', None) or error
    return f'{type(error).__name__}: {getattr(inner, "orig", None) or inner}'
