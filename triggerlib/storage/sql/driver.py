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

"""The storage driver for SQLite, PostgreSQL, and MySQL or MariaDB."""

import contextlib
import os

from triggerlib import opts
from triggerlib.storage import driver as driver_module
from triggerlib.storage.sql import engine as engine_module
from triggerlib.storage.sql import schema
from triggerlib.storage.sql import transaction as transaction_module


class SQLDriver(driver_module.Driver):
    """A storage in a database, through SQLAlchemy.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param url: SQLAlchemy's URL of the database
    :param clock: the clock to go by, in place of the database's
    """

    def __init__(self, conf, url, clock=None):
        self._conf = conf
        self._url = url
        self._clock = clock
        self.retries = conf[opts.GROUP].storage_retries
        #: By process: connections cannot be shared with a child.
        self._opened = {os.getpid(): self._open()}

    def _open(self):
        engine = engine_module.create(self._conf, self._url)
        return engine, engine_module.Turns(engine)

    def _here(self):
        """Return engine and turns of this process."""
        pid = os.getpid()
        opened = self._opened.get(pid)
        if opened is None:
            # Of threads that come here at once, one's engine is kept.
            opened = self._opened.setdefault(pid, self._open())
            for other in set(self._opened) - {pid}:
                # The parent still uses its connections.
                gone = self._opened.pop(other, None)
                if gone is not None:
                    gone[0].dispose(close=False)
        return opened

    @property
    def engine(self):
        """The SQLAlchemy engine of this process."""
        return self._here()[0]

    @contextlib.contextmanager
    def begin(self, write=True):
        """Begin a unit of work."""
        engine, turns = self._here()
        with (turns.take(write), engine_module.errors(),
              engine.connect() as connection):
            connection = connection.execution_options(
                **{engine_module.WRITE: write})
            with connection.begin():
                yield transaction_module.SQLTransaction(
                    connection, self._clock)

    def upgrade(self):
        """Bring the schema to what this release needs."""
        with engine_module.errors():
            schema.upgrade(self.engine)

    def check(self):
        """Refuse a schema that this release cannot work with."""
        with engine_module.errors():
            schema.check(self.engine)

    def close(self):
        """Give connections back."""
        opened = self._opened.get(os.getpid())
        if opened is not None:
            opened[0].dispose()
