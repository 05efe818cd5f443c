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

"""Real servers for tests: where they are, and what to do without them.

Each has an environment variable with a default on the loopback. Without the
server the test is skipped, or fails where TRIGGERLIB_REQUIRE_SERVERS is set.
"""

import fcntl
import os
import tempfile
import uuid

import kombu
import sqlalchemy as sa

from triggerlib.messaging import rpc

POSTGRESQL = os.environ.get(
    'TRIGGERLIB_TEST_POSTGRESQL',
    'postgresql+psycopg://root@127.0.0.1:5432/postgres')
MYSQL = os.environ.get(
    'TRIGGERLIB_TEST_MYSQL',
    'mysql+pymysql://root@127.0.0.1:3306/?charset=utf8mb4')
RABBITMQ = os.environ.get(
    'TRIGGERLIB_TEST_RABBITMQ', 'rabbit://guest:guest@127.0.0.1:5672/')


def postgresql_url(test):
    """Return the URL of an empty PostgreSQL database for one test."""
    return _scratch(test, 'PostgreSQL', POSTGRESQL,
                    'CREATE DATABASE {} ENCODING utf8 TEMPLATE template0',
                    'DROP DATABASE IF EXISTS {} WITH (FORCE)')


def mysql_url(test):
    """Return the URL of an empty MariaDB or MySQL database for one test."""
    return _scratch(test, 'MariaDB', MYSQL,
                    'CREATE DATABASE {} CHARACTER SET utf8mb4',
                    'DROP DATABASE IF EXISTS {}')


def rabbitmq_url(test):
    """Return the transport URL of RabbitMQ, for one test at a time.

    The queue of rpc has one name whoever uses it, so tests in several
    processes would take each other's casts. Each waits for the one before
    it, and finds no casts that it left.
    """
    url = sa.make_url(RABBITMQ)
    lock = open(os.path.join(tempfile.gettempdir(),
                             'triggerlib-tests-rabbitmq.lock'), 'w')
    test.addCleanup(lock.close)
    fcntl.flock(lock, fcntl.LOCK_EX)
    broker = kombu.Connection(
        url.set(drivername='amqp').render_as_string(hide_password=False),
        connect_timeout=5)
    try:
        with broker:
            broker.connect()
            broker.default_channel.queue_delete(rpc.TOPIC)
    except broker.connection_errors as error:
        _missing(test, 'RabbitMQ', error)
    return RABBITMQ


def _scratch(test, name, url, create, drop):
    url = sa.make_url(url)
    database = f'triggerlib_{uuid.uuid4().hex}'
    engine = sa.create_engine(
        url, isolation_level='AUTOCOMMIT', poolclass=sa.pool.NullPool)

    def execute(statement):
        with engine.connect() as connection:
            connection.exec_driver_sql(statement.format(database))

    try:
        execute(create)
    except (sa.exc.OperationalError, ImportError) as error:
        _missing(test, name, error)
    test.addCleanup(execute, drop)
    return url.set(database=database).render_as_string(hide_password=False)


def _missing(test, name, error):
    text = f'{name} is not there: {error}'
    if os.environ.get('TRIGGERLIB_REQUIRE_SERVERS'):
        test.fail(text)
    test.skipTest(text)
