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

"""Private servers, which a test may stop, kill, freeze and start again.

Each runs on free ports of the loopback, with its data in a folder of its
own, from the programs that the distribution installs. Without these the test
is skipped, or fails where TRIGGERLIB_REQUIRE_SERVERS is set.
"""

import glob
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

import fixtures
import kombu
import psycopg
import pymysql

from tests.chaos import processes

#: Seconds in which a server starts or stops.
PATIENCE = 60
#: Ports that Linux gives to nobody who does not ask for them, so that they
#: are still free when a server comes back.
_PORTS = range(20000, 32768)
#: Where Debian installs what is not for everybody's PATH. What it has in the
#: PATH as rabbitmq-server insists on a user and on folders of its own.
_FIRST = '/usr/lib/rabbitmq/bin'
_LAST = ('/usr/sbin', '/usr/lib/postgresql/*/bin')
_TAIL = 3000


def find(*names):
    """Return the paths of programs, by name.

    :raises unittest.SkipTest: one is not installed, and need not be
    :raises AssertionError: one is not installed
    """
    path = os.pathsep.join([
        _FIRST, os.environ.get('PATH', os.defpath),
        *(each for folder in _LAST
          for each in sorted(glob.glob(folder), reverse=True))])
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name in names if found[name] is None]
    if missing:
        absent(f'not installed: {", ".join(missing)}')
    return found


def absent(text):
    """Skip the test, or fail it where servers are required."""
    if os.environ.get('TRIGGERLIB_REQUIRE_SERVERS'):
        raise AssertionError(text)
    raise unittest.SkipTest(text)


def free_port():
    """Return a port of the loopback at which nobody listens."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(('127.0.0.1', port))
            except OSError:
                continue
            return port


class Node(fixtures.Fixture):
    """A server.

    It runs when the fixture is set up, and is gone, with its data, when the
    fixture is cleaned up, in whatever condition it was.

    :ivar url: where it is, as triggerlib's options have it
    :ivar port: the port at which it listens
    """

    #: The programs that it needs.
    programs = ()
    #: The signal that asks it to end.
    end_signal = signal.SIGTERM
    #: Who runs it where the test is root's, None for root.
    user = None

    def __init__(self):
        super().__init__()
        self.programs = find(*self.programs)
        if os.geteuid() != 0:
            self.user = None
        elif self.user is not None:
            try:
                pwd.getpwnam(self.user)
            except KeyError:
                absent(f'there is no user {self.user}')

    def _setUp(self):
        # As /proc shows it, and not below a folder of another user's.
        self.folder = os.path.realpath(
            self.useFixture(fixtures.TempDir()).path)
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.port = free_port()
        self._process = None
        self._spawned = []
        self._paused = False
        self.addCleanup(self.kill)
        self._create()
        self.start()

    # For a kind of server

    def _create(self):
        """Make what it needs before its first start."""

    def _launch(self):
        """Run it, and return the process that is to be asked to end."""
        raise NotImplementedError

    def _environment(self):
        """Return what is to be in its environment beside this one's."""
        return {}

    def _ask(self):
        """Ask it something; raises until it answers."""
        raise NotImplementedError

    # For a test

    def start(self):
        """Start it on the data and the port that it had.

        :raises AssertionError: it does not answer in time
        """
        if self._process is not None:
            raise AssertionError('it runs')
        self._process = self._launch()
        self._wait_for_answer()

    def stop(self):
        """Ask it to end, and wait until it has.

        :raises AssertionError: it does not end in time
        """
        if self._process is None:
            raise AssertionError('it does not run')
        self.resume()
        self._process.send_signal(self.end_signal)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f'it does not end:\n{self.log()}') from None
        self.kill()

    def kill(self):
        """End all its processes at once, and let them do nothing more."""
        processes.kill(self.folder)
        for process in self._spawned:
            process.wait(PATIENCE)
        self._spawned.clear()
        self._process = None
        self._paused = False

    def restart(self, kill=False):
        """Stop or kill it, and start it.

        :param kill: give it no chance to end by itself
        """
        self.kill() if kill else self.stop()
        self.start()

    def pause(self):
        """Freeze all its processes: it is there, and says nothing."""
        processes.freeze(self.folder)
        self._paused = True

    def resume(self):
        """Let it go on after :meth:`pause`."""
        if self._paused:
            processes.send(processes.inside(self.folder), signal.SIGCONT)
            self._paused = False

    def log(self):
        """Return the end of what it wrote to its log."""
        path = pathlib.Path(self.folder, 'log')
        if not path.exists():
            return ''
        return path.read_bytes()[-_TAIL:].decode(errors='replace')

    def _spawn(self, command):
        with open(f'{self.folder}/log', 'ab') as log:
            process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self._environment()}, **self._as_user())
        self._spawned.append(process)
        return process

    def _as_user(self):
        if self.user is None:
            return {}
        entry = pwd.getpwnam(self.user)
        return {'user': entry.pw_uid, 'group': entry.pw_gid,
                'extra_groups': ()}

    def _run(self, command):
        """Run a command to its end, as the user that runs the server."""
        process = self._spawn(command)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f'{command[0]} does not end:\n{self.log()}') from None
        if code != 0:
            raise AssertionError(
                f'{command[0]} ended with {code}:\n{self.log()}')

    def _wait_for_answer(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            code = self._process.poll()
            if code is not None:
                raise AssertionError(
                    f'it ended with {code} as it started:\n{self.log()}')
            try:
                return self._ask()
            except Exception as error:
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f'it does not answer: {error}\n{self.log()}'
                    ) from error
            time.sleep(0.05)


class PostgreSQLNode(Node):
    """A PostgreSQL server with an empty database."""

    programs = ('initdb', 'ipcrm', 'postgres')
    # Clients are cut off, and what was written is kept.
    end_signal = signal.SIGINT
    user = 'postgres'

    @property
    def url(self):
        return (f'postgresql+psycopg://postgres@127.0.0.1:{self.port}'
                f'/postgres')

    def _create(self):
        self._run([
            self.programs['initdb'], '-D', f'{self.folder}/data',
            '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale',
            '--no-sync', '--no-instructions'])

    def _launch(self):
        return self._spawn([
            self.programs['postgres'], '-D', f'{self.folder}/data',
            '-p', str(self.port), '-c', 'listen_addresses=127.0.0.1',
            '-c', 'unix_socket_directories=',
            '-c', 'dynamic_shared_memory_type=mmap'])

    def kill(self):
        super().kill()
        # Its file names the shared memory that it had no time to give back:
        # the key and the id, in the seventh line.
        path = pathlib.Path(self.folder, 'data', 'postmaster.pid')
        if path.exists():
            lines = path.read_text().splitlines()
            if len(lines) > 6:
                subprocess.run(
                    [self.programs['ipcrm'], '-m', lines[6].split()[1]],
                    stderr=subprocess.DEVNULL, timeout=PATIENCE)

    def _ask(self):
        with psycopg.connect(
                host='127.0.0.1', port=self.port, user='postgres',
                dbname='postgres', connect_timeout=5) as connection:
            connection.execute('SELECT 1')


class MariaDBNode(Node):
    """A MariaDB server with an empty database."""

    programs = ('mariadb-install-db', 'mariadbd')
    user = 'mysql'
    database = 'triggerlib'

    @property
    def url(self):
        return (f'mysql+pymysql://root@127.0.0.1:{self.port}/{self.database}'
                f'?charset=utf8mb4')

    def _create(self):
        self._run([
            self.programs['mariadb-install-db'], *self._options(),
            '--auth-root-authentication-method=normal', '--skip-test-db'])

    def _options(self):
        # In a folder that they share, servers that start delete temporary
        # tables of others.
        return ['--no-defaults', f'--datadir={self.folder}/data',
                f'--tmpdir={self.folder}', '--skip-name-resolve',
                '--innodb-log-file-size=16M',
                '--innodb-buffer-pool-size=32M']

    def _command(self):
        return [self.programs['mariadbd'], *self._options(),
                '--bind-address=127.0.0.1', f'--port={self.port}',
                f'--socket={self.folder}/socket',
                f'--pid-file={self.folder}/pid']

    def _launch(self):
        return self._spawn(self._command())

    def _ask(self):
        # To make the database is an answer, too.
        with pymysql.connect(
                host='127.0.0.1', port=self.port, user='root',
                connect_timeout=5, read_timeout=5) as connection:
            connection.cursor().execute(
                f'CREATE DATABASE IF NOT EXISTS {self.database} '
                f'CHARACTER SET utf8mb4')


class RabbitMQNode(Node):
    """A RabbitMQ broker, with a port mapper of its own."""

    programs = ('epmd', 'rabbitmq-server')

    @property
    def url(self):
        return f'rabbit://guest:guest@127.0.0.1:{self.port}/'

    def _create(self):
        self._mapper_port = free_port()
        self._exchange_port = free_port()
        for name, text in (('env.conf', ''), ('rabbitmq.conf', ''),
                           ('plugins', '[].\n')):
            pathlib.Path(self.folder, name).write_text(text)

    def _environment(self):
        folder = self.folder
        return {
            'HOME': folder,
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'ERL_EPMD_PORT': str(self._mapper_port),
            'RABBITMQ_CONF_ENV_FILE': f'{folder}/env.conf',
            'RABBITMQ_CONFIG_FILE': f'{folder}/rabbitmq.conf',
            'RABBITMQ_ENABLED_PLUGINS_FILE': f'{folder}/plugins',
            'RABBITMQ_NODENAME': f'triggerlib{self.port}@localhost',
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_DIST_PORT': str(self._exchange_port),
            'RABBITMQ_MNESIA_BASE': f'{folder}/data',
            'RABBITMQ_LOG_BASE': f'{folder}/logs',
            'RABBITMQ_LOGS': '-',
            'RABBITMQ_PID_FILE': f'{folder}/pid',
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                '-start_epmd false '
                '-kernel inet_dist_use_interface {127,0,0,1}',
            # The script then becomes the server, and does not stay as a
            # shell before it.
            'RUNNING_UNDER_SYSTEMD': 'true',
        }

    def _launch(self):
        self._launch_mapper()
        return self._spawn([self.programs['rabbitmq-server']])

    def _launch_mapper(self):
        mapper = self._spawn([
            self.programs['epmd'], '-address', '127.0.0.1',
            '-port', str(self._mapper_port)])
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return socket.create_connection(
                    ('127.0.0.1', self._mapper_port), 5).close()
            except OSError as error:
                if mapper.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(
                        f'epmd does not answer: {error}\n{self.log()}'
                    ) from error
            time.sleep(0.01)

    def _ask(self):
        with kombu.Connection(
                f'amqp://guest:guest@127.0.0.1:{self.port}//',
                connect_timeout=5) as connection:
            connection.connect()
