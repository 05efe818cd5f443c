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

_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6
#: Serialization failure, deadlock, and lock not available.
_SQLSTATES = ('40001', '40P01', '55P03')


def create(conf, text) -> sa.Engine:
    """Return an engine for a URL; nothing is connected to.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param text: the ``connection`` option
    :raises StorageError: the URL cannot be read
    """
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError as error:
        # Its text has the URL, and so a password.
        raise exceptions.StorageError(
            'the option connection is not a database URL') from error
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


def lock_of(engine):
    """Return a lock that orders the transactions of this process.

    SQLite has one writer at a time, and those that wait look again at
    growing intervals: in one process a lock is fairer. Other backends need
    none.
    """
    if engine.dialect.name == 'sqlite':
        return threading.RLock()
    return contextlib.nullcontext()


@contextlib.contextmanager
def errors():
    """Raise the package's errors for the databases'.

    :raises StorageBusy: what was done may succeed when it is done again
    :raises StorageError: it will not
    """
    try:
        yield
    except (db_exc.DBDeadlock, db_exc.DBConnectionError,
            db_exc.DBDuplicateEntry) as error:
        # A duplicate is another transaction that was faster: what it stored
        # is found when this one is run again.
        raise exceptions.StorageBusy(_text(error)) from error
    except sa.exc.TimeoutError as error:
        raise exceptions.StorageBusy(_text(error)) from error
    except (db_exc.DBError, sa.exc.DBAPIError) as error:
        if _is_busy(error):
            raise exceptions.StorageBusy(_text(error)) from error
        raise exceptions.StorageError(_text(error)) from error


def _is_busy(error):
    if isinstance(error, db_exc.DBError):
        error = error.inner_exception
    if getattr(error, 'connection_invalidated', False):
        return True
    original = getattr(error, 'orig', None)
    code = getattr(original, 'sqlite_errorcode', None)
    if code is not None:
        return code & 0xff in (_SQLITE_BUSY, _SQLITE_LOCKED)
    return getattr(original, 'sqlstate', None) in _SQLSTATES


def _text(error):
    """Return what the database said, without the statement's values."""
    inner = getattr(error, 'inner_exception', None) or error
    return f'{type(error).__name__}: {getattr(inner, "orig", None) or inner}'
