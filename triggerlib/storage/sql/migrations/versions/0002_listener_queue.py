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

"""How far listeners are with their queues.

Revision ID: 0002
Revises: 0001
"""

from alembic import op
import sqlalchemy as sa

from triggerlib.storage.sql import models

revision = '0002'
down_revision = '0001'

_OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
            'mariadb_engine': 'InnoDB', 'mariadb_charset': 'utf8mb4'}


def upgrade():
    """Create the table."""
    op.create_table(
        'listener_queue',
        sa.Column('listener', models.Exact(255), primary_key=True),
        sa.Column('queue', models.Exact(255), primary_key=True),
        sa.Column('progress', sa.BigInteger, nullable=False),
        sa.Column('holds', sa.Boolean, nullable=False),
        sa.Column('until', sa.BigInteger, nullable=False),
        **_OPTIONS)


def downgrade():
    """Drop the table."""
    op.drop_table('listener_queue')
