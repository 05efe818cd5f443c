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

"""A Galera cluster: MariaDB servers that each take writes for all."""

import os
import pathlib
import shutil
import uuid

import fixtures
import pymysql
import sqlalchemy as sa

from tests.chaos import nodes

#: Where distributions install the library that replicates.
_LIBRARIES = ('/usr/lib/galera/libgalera_smm.so',
              '/usr/lib64/galera/libgalera_smm.so',
              '/usr/lib64/galera-4/libgalera_smm.so')
#: What a server that has all of the others' writes says of itself.
_SYNCED = '4'


class GaleraNode(nodes.MariaDBNode):
    """One server of a cluster.

    :param group_port: where it talks to the others
    :param members: the group ports of all servers of the cluster
    :param founder: whether it founds the cluster
    """

    programs = (*nodes.MariaDBNode.programs, 'rsync')

    def __init__(self, group_port, members, founder):
        super().__init__()
        self._group_port = group_port
        self._members = members
        self._founder = founder
        self._founded = False
        self._library = next(filter(os.path.exists, _LIBRARIES), None)
        if self._library is None:
            nodes.absent('not installed: libgalera_smm.so')

    def _create(self):
        self._transfer_ports = [nodes.free_port(), nodes.free_port()]
        if self._founder:
            super()._create()
        else:
            # It gets its data from the first.
            path = pathlib.Path(self.folder, 'data')
            path.mkdir()
            if self.user is not None:
                shutil.chown(path, self.user)

    def _launch(self):
        command = [
            *self._command(),
            '--wsrep-on=ON', f'--wsrep-provider={self._library}',
            '--binlog-format=ROW', '--innodb-autoinc-lock-mode=2',
            '--wsrep-cluster-name=triggerlib',
            '--wsrep-cluster-address=gcomm://' + ','.join(
                f'127.0.0.1:{port}' for port in self._members),
            f'--wsrep-node-name=node{self.port}',
            f'--wsrep-node-address=127.0.0.1:{self._group_port}',
            f'--wsrep-node-incoming-address=127.0.0.1:{self.port}',
            '--wsrep-sst-method=rsync',
            f'--wsrep-sst-receive-address=127.0.0.1:'
            f'{self._transfer_ports[0]}',
            '--wsrep-provider-options=' + ';'.join([
                f'base_port={self._group_port}',
                f'gmcast.listen_addr=tcp://127.0.0.1:{self._group_port}',
                f'ist.recv_addr=127.0.0.1:{self._transfer_ports[1]}',
                f'ist.recv_bind=127.0.0.1:{self._transfer_ports[1]}',
                'gcache.size=16M', 'pc.recovery=false',
                # The founder alone is more than half of the cluster.
                f'pc.weight={2 if self._founder else 1}',
                'evs.suspect_timeout=PT3S', 'evs.keepalive_period=PT0.5S',
            ])]
        if self._founder and not self._founded:
            command.append('--wsrep-new-cluster')
        self._founded = True
        return self._spawn(command)

    def _ask(self):
        with pymysql.connect(
                host='127.0.0.1', port=self.port, user='root',
                connect_timeout=5, read_timeout=5) as connection:
            cursor = connection.cursor()
            cursor.execute("SHOW STATUS LIKE 'wsrep_local_state'")
            (_, state), = cursor.fetchall()
            if state != _SYNCED:
                raise OSError(f'its state is {state}')
        super()._ask()


class GaleraNodes(fixtures.Fixture):
    """A cluster of two servers.

    Without the second the first goes on; without the first the second
    refuses to work, as it cannot know that it is the only one left.

    :ivar nodes: the two :class:`GaleraNode`
    """

    def __init__(self):
        super().__init__()
        members = [nodes.free_port(), nodes.free_port()]
        self.nodes = [GaleraNode(port, members, founder=port == members[0])
                      for port in members]

    def _setUp(self):
        for node in self.nodes:
            self.useFixture(node)

    def new_database(self):
        """Make a database, and return its URL at each server."""
        name = f'triggerlib_{uuid.uuid4().hex}'
        maker = sa.create_engine(
            self.nodes[0].url, poolclass=sa.pool.NullPool)
        with maker.connect() as connection:
            connection.exec_driver_sql(
                f'CREATE DATABASE {name} CHARACTER SET utf8mb4')
        return [sa.make_url(node.url).set(database=name).render_as_string(
            hide_password=False) for node in self.nodes]
