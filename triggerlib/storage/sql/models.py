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

"""The tables."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

#: Longest message_id, event_type and name, in characters.
NAME_LENGTH = 255
#: Longest value in the trait index; what is longer is cut.
VALUE_LENGTH = 200

metadata = sa.MetaData()


class Exact(sa.types.TypeDecorator):
    """Text that compares byte by byte on every backend.

    MySQL and MariaDB have no collation in common that neither folds nor
    pads, so the text is kept as bytes there.
    """

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect):
        """Return the type on a backend."""
        if dialect.name in ('mysql', 'mariadb'):
            return dialect.type_descriptor(
                mysql.VARBINARY(self.impl.length * 4))
        if dialect.name == 'postgresql':
            return dialect.type_descriptor(
                sa.String(self.impl.length, collation='C'))
        return dialect.type_descriptor(sa.String(self.impl.length))

    def process_bind_param(self, value, dialect):
        """Encode a value where the backend keeps bytes."""
        if value is not None and dialect.name in ('mysql', 'mariadb'):
            return value.encode()
        return value

    def process_result_value(self, value, dialect):
        """Decode a value where the backend keeps bytes."""
        if isinstance(value, (bytes, bytearray)):
            return bytes(value).decode()
        return value


def long_text():
    """Return the type of a text of any length."""
    return sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def row_id():
    """Return the type of a number that the database gives."""
    # Only INTEGER numbers rows by itself in SQLite; it has 64 bits there.
    return sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mariadb_engine': 'InnoDB', 'mariadb_charset': 'utf8mb4'}

# All times are whole microseconds since 1970, UTC: the same, and exact, on
# every backend.

event = sa.Table(
    'event', metadata,
    sa.Column('id', row_id(), primary_key=True, autoincrement=True),
    sa.Column('message_id', Exact(NAME_LENGTH), nullable=False),
    sa.Column('event_type', Exact(NAME_LENGTH), nullable=False),
    sa.Column('timestamp', sa.BigInteger, nullable=False),
    sa.Column('stored_at', sa.BigInteger, nullable=False),
    sa.Column('traits', long_text(), nullable=False),
    sa.UniqueConstraint('message_id', name='uq_event_message_id'),
    sa.Index('ix_event_timestamp', 'timestamp', 'message_id'),
    sa.Index('ix_event_type_timestamp', 'event_type', 'timestamp',
             'message_id'),
    **_OPTIONS)

event_trait = sa.Table(
    'event_trait', metadata,
    sa.Column('event_id', row_id(), sa.ForeignKey(
        'event.id', name='fk_event_trait_event', ondelete='CASCADE'),
        primary_key=True, autoincrement=False),
    sa.Column('name', Exact(NAME_LENGTH), primary_key=True),
    sa.Column('value', Exact(VALUE_LENGTH), nullable=False),
    sa.Column('timestamp', sa.BigInteger, nullable=False),
    sa.Index('ix_event_trait_value', 'name', 'value', 'timestamp',
             'event_id'),
    **_OPTIONS)

# Which traits are in the trait index: of all events where indexed_to is NULL,
# else of those with an id up to that, and of those stored since the trait was
# registered. The row of the empty name is always there, to be locked.
indexed_trait = sa.Table(
    'indexed_trait', metadata,
    sa.Column('name', Exact(NAME_LENGTH), primary_key=True),
    sa.Column('indexed_to', sa.BigInteger),
    **_OPTIONS)

instance = sa.Table(
    'trigger_instance', metadata,
    sa.Column('id', row_id(), primary_key=True, autoincrement=True),
    sa.Column('name', Exact(NAME_LENGTH), nullable=False),
    sa.Column('key', long_text(), nullable=False),
    sa.Column('active_key', Exact(64)),
    sa.Column('fingerprint', sa.String(64), nullable=False),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('first_event', sa.BigInteger, nullable=False),
    sa.Column('last_event', sa.BigInteger, nullable=False),
    sa.Column('expire_timestamp', sa.BigInteger),
    sa.Column('fire_timestamp', sa.BigInteger),
    sa.Column('counts', sa.Text, nullable=False),
    sa.Column('event_count', sa.BigInteger, nullable=False),
    sa.Column('version', sa.BigInteger, nullable=False),
    sa.Column('owner', Exact(NAME_LENGTH)),
    sa.Column('deadline', sa.BigInteger),
    sa.Column('not_before', sa.BigInteger),
    sa.Column('attempts', sa.Integer, nullable=False),
    sa.Column('error', long_text()),
    sa.Column('created_at', sa.BigInteger, nullable=False),
    sa.Column('updated_at', sa.BigInteger, nullable=False),
    sa.UniqueConstraint('active_key', name='uq_trigger_instance_active_key'),
    sa.Index('ix_trigger_instance_fire', 'state', 'fire_timestamp'),
    sa.Index('ix_trigger_instance_expire', 'state', 'expire_timestamp',
             'fire_timestamp'),
    sa.Index('ix_trigger_instance_deadline', 'state', 'deadline'),
    sqlite_autoincrement=True, **_OPTIONS)

instance_event = sa.Table(
    'instance_event', metadata,
    sa.Column('instance_id', row_id(), sa.ForeignKey(
        'trigger_instance.id', name='fk_instance_event_instance',
        ondelete='CASCADE'), primary_key=True, autoincrement=False),
    sa.Column('event_id', row_id(), sa.ForeignKey(
        'event.id', name='fk_instance_event_event'),
        primary_key=True, autoincrement=False),
    sa.Index('ix_instance_event_event', 'event_id'),
    **_OPTIONS)

step_journal = sa.Table(
    'step_journal', metadata,
    sa.Column('instance_id', row_id(), sa.ForeignKey(
        'trigger_instance.id', name='fk_step_journal_instance',
        ondelete='CASCADE'), primary_key=True, autoincrement=False),
    sa.Column('step', Exact(NAME_LENGTH), primary_key=True),
    sa.Column('position', sa.Integer, nullable=False),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('attempts', sa.Integer, nullable=False),
    sa.Column('items', sa.BigInteger, nullable=False),
    sa.Column('output', long_text()),
    sa.Column('error', long_text()),
    sa.Column('started_at', sa.BigInteger),
    sa.Column('finished_at', sa.BigInteger),
    **_OPTIONS)

dead_letter = sa.Table(
    'dead_letter', metadata,
    sa.Column('id', row_id(), primary_key=True, autoincrement=True),
    sa.Column('kind', sa.String(20), nullable=False),
    sa.Column('message_id', long_text()),
    sa.Column('reason', long_text(), nullable=False),
    sa.Column('body', long_text(), nullable=False),
    sa.Column('created_at', sa.BigInteger, nullable=False),
    sqlite_autoincrement=True, **_OPTIONS)

# How far each listener is with each of its queues; each row is written by its
# listener alone.
listener_queue = sa.Table(
    'listener_queue', metadata,
    sa.Column('listener', Exact(NAME_LENGTH), primary_key=True),
    sa.Column('queue', Exact(NAME_LENGTH), primary_key=True),
    sa.Column('progress', sa.BigInteger, nullable=False),
    sa.Column('holds', sa.Boolean, nullable=False),
    sa.Column('until', sa.BigInteger, nullable=False),
    **_OPTIONS)
