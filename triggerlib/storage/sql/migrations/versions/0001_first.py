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

"""The first schema.

Revision ID: 0001
Revises:
"""

from alembic import op
import sqlalchemy as sa

from triggerlib.storage.sql import models

revision = '0001'
down_revision = None

_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mariadb_engine': 'InnoDB', 'mariadb_charset': 'utf8mb4'}


def upgrade():
    """Create all tables."""
    op.create_table(
        'event',
        sa.Column('id', models.row_id(), primary_key=True, autoincrement=True),
        sa.Column('message_id', models.Exact(255), nullable=False),
        sa.Column('event_type', models.Exact(255), nullable=False),
        sa.Column('timestamp', sa.BigInteger, nullable=False),
        sa.Column('stored_at', sa.BigInteger, nullable=False),
        sa.Column('traits', models.long_text(), nullable=False),
        sa.UniqueConstraint('message_id', name='uq_event_message_id'),
        **_OPTIONS)
    op.create_index(
        'ix_event_timestamp', 'event',
        ['timestamp', 'message_id'])
    op.create_index(
        'ix_event_type_timestamp', 'event',
        ['event_type', 'timestamp', 'message_id'])
    op.create_table(
        'event_trait',
        sa.Column('event_id', models.row_id(), sa.ForeignKey(
            'event.id', name='fk_event_trait_event', ondelete='CASCADE'),
            primary_key=True, autoincrement=False),
        sa.Column('name', models.Exact(255), primary_key=True),
        sa.Column('value', models.Exact(200), nullable=False),
        sa.Column('timestamp', sa.BigInteger, nullable=False),
        **_OPTIONS)
    op.create_index(
        'ix_event_trait_value', 'event_trait',
        ['name', 'value', 'timestamp', 'event_id'])
    op.create_table(
        'indexed_trait',
        sa.Column('name', models.Exact(255), primary_key=True),
        sa.Column('indexed_to', sa.BigInteger),
        **_OPTIONS)
    op.create_table(
        'trigger_instance',
        sa.Column('id', models.row_id(), primary_key=True, autoincrement=True),
        sa.Column('name', models.Exact(255), nullable=False),
        sa.Column('key', models.long_text(), nullable=False),
        sa.Column('active_key', models.Exact(64)),
        sa.Column('fingerprint', sa.String(64), nullable=False),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('first_event', sa.BigInteger, nullable=False),
        sa.Column('last_event', sa.BigInteger, nullable=False),
        sa.Column('expire_timestamp', sa.BigInteger),
        sa.Column('fire_timestamp', sa.BigInteger),
        sa.Column('counts', sa.Text, nullable=False),
        sa.Column('event_count', sa.BigInteger, nullable=False),
        sa.Column('version', sa.BigInteger, nullable=False),
        sa.Column('owner', models.Exact(255)),
        sa.Column('deadline', sa.BigInteger),
        sa.Column('not_before', sa.BigInteger),
        sa.Column('attempts', sa.Integer, nullable=False),
        sa.Column('error', models.long_text()),
        sa.Column('created_at', sa.BigInteger, nullable=False),
        sa.Column('updated_at', sa.BigInteger, nullable=False),
        sa.UniqueConstraint('active_key',
                            name='uq_trigger_instance_active_key'),
        sqlite_autoincrement=True, **_OPTIONS)
    op.create_index(
        'ix_trigger_instance_fire', 'trigger_instance',
        ['state', 'fire_timestamp'])
    op.create_index(
        'ix_trigger_instance_expire', 'trigger_instance',
        ['state', 'expire_timestamp', 'fire_timestamp'])
    op.create_index(
        'ix_trigger_instance_deadline', 'trigger_instance',
        ['state', 'deadline'])
    op.create_table(
        'instance_event',
        sa.Column('instance_id', models.row_id(), sa.ForeignKey(
            'trigger_instance.id', name='fk_instance_event_instance',
            ondelete='CASCADE'), primary_key=True, autoincrement=False),
        sa.Column('event_id', models.row_id(), sa.ForeignKey(
            'event.id', name='fk_instance_event_event'),
            primary_key=True, autoincrement=False),
        **_OPTIONS)
    op.create_index(
        'ix_instance_event_event', 'instance_event',
        ['event_id'])
    op.create_table(
        'step_journal',
        sa.Column('instance_id', models.row_id(), sa.ForeignKey(
            'trigger_instance.id', name='fk_step_journal_instance',
            ondelete='CASCADE'), primary_key=True, autoincrement=False),
        sa.Column('step', models.Exact(255), primary_key=True),
        sa.Column('position', sa.Integer, nullable=False),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('attempts', sa.Integer, nullable=False),
        sa.Column('items', sa.BigInteger, nullable=False),
        sa.Column('output', models.long_text()),
        sa.Column('error', models.long_text()),
        sa.Column('started_at', sa.BigInteger),
        sa.Column('finished_at', sa.BigInteger),
        **_OPTIONS)
    op.create_table(
        'dead_letter',
        sa.Column('id', models.row_id(), primary_key=True, autoincrement=True),
        sa.Column('kind', sa.String(20), nullable=False),
        sa.Column('message_id', models.long_text()),
        sa.Column('reason', models.long_text(), nullable=False),
        sa.Column('body', models.long_text(), nullable=False),
        sa.Column('created_at', sa.BigInteger, nullable=False),
        sqlite_autoincrement=True, **_OPTIONS)
    op.bulk_insert(
        sa.table('indexed_trait', sa.column('name', models.Exact(255))),
        [{'name': ''}])


def downgrade():
    """Drop all tables."""
    for name in ('dead_letter',
                 'step_journal',
                 'instance_event',
                 'trigger_instance',
                 'indexed_trait',
                 'event_trait',
                 'event'):
        op.drop_table(name)
