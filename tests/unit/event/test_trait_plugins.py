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

"""The trait plugins, and those that were written for Ceilometer."""

import datetime
from unittest import mock

from tests import base
from triggerlib.event import trait_plugin
from triggerlib.event import trait_plugins
from triggerlib import exceptions
from triggerlib import plugins

UTC = datetime.timezone.utc


def matches(*values):
    return [(f'payload.f{number}', value)
            for number, value in enumerate(values)]


class PluginTestCase(base.TestCase):

    def assertGives(self, wanted, call, *values):
        self.assertEqual(wanted, call(matches(*values)))

    def assertRefuses(self, name, **parameters):
        error = self.assertRaises(
            exceptions.PluginError, trait_plugin.load, name, parameters)
        self.assertIn(name, str(error))


class TestSplit(PluginTestCase):

    def test_defaults(self):
        call = trait_plugin.load('split', {})
        self.assertGives('compute', call, 'compute.host.com')
        self.assertGives('compute', call, 'compute')
        self.assertGives(None, call)

    def test_parameters(self):
        call = trait_plugin.load('split', {'segment': 1, 'max_split': 1})
        self.assertGives('host.com', call, 'compute.host.com')
        self.assertGives(None, call, 'compute')
        self.assertGives('c', trait_plugin.load(
            'split', {'separator': '::', 'segment': -1}), 'a::b::c')
        self.assertGives('5', trait_plugin.load(
            'split', {'segment': 1}), 2.5)

    def test_first_that_has_the_part(self):
        call = trait_plugin.load('split', {'segment': 1})
        self.assertGives('d', call, 'a', 'c.d', 'e.f')

    def test_refused(self):
        self.assertRefuses('split', separator='')
        self.assertRefuses('split', segment='1')
        self.assertRefuses('split', max_split='x')
        self.assertRefuses('split', seperator='.')


class TestBitfield(PluginTestCase):

    def test_flags(self):
        call = trait_plugin.load('bitfield', {
            'initial_bitfield': 8,
            'flags': [{'path': 'payload.f0', 'bit': 0},
                      {'path': 'payload.f1', 'bit': 1, 'value': 'on'},
                      {'path': 'payload.f2', 'bit': '2', 'value': None}]})
        self.assertGives(8, call)
        self.assertGives(9, call, '')
        self.assertGives(9, call, 'x', 'off')
        self.assertGives(11, call, 'x', 'on', 5)

    def test_quoted_path(self):
        call = trait_plugin.load('bitfield', {
            'flags': [{'path': "payload.'a.b'[0]", 'bit': 4}]})
        self.assertEqual(16, call([('payload.a.b.[0]', 1)]))
        self.assertEqual(0, call([('payload.a', 1)]))

    def test_refused(self):
        self.assertRefuses('bitfield', initial_bitfield='x')
        for flags in ('x', ['x'], [{'path': 'a'}], [{'bit': 1}],
                      [{'path': 'a', 'bit': 63}], [{'path': 'a', 'bit': -1}],
                      [{'path': 'a', 'bit': 'x'}], [{'path': 5, 'bit': 1}],
                      [{'path': 'a', 'bit': 1, 'valeu': 5}],
                      [{'path': 'a.', 'bit': 1}]):
            self.assertRefuses('bitfield', flags=flags)


class TestTimedelta(PluginTestCase):

    def test_seconds(self):
        call = trait_plugin.load('timedelta', {})
        begin, end = '2012-03-12 17:00:00', '2012-03-12T17:01:00.5Z'
        self.assertGives(60.5, call, begin, end)
        self.assertGives(60.5, call, end, begin)

    def test_missing(self):
        call = trait_plugin.load('timedelta', {})
        self.assertGives(None, call)
        self.assertGives(None, call, '2012-03-12 17:00:00')

    def test_unusable(self):
        call = trait_plugin.load('timedelta', {})
        self.assertRaises(ValueError, call, matches('x', 'y'))
        self.assertRaises(ValueError, call, matches(*['2012-03-12'] * 3))


class TestMap(PluginTestCase):

    VALUES = {'ACTIVE': 1, 'Error': 2, 5: 'five', 'gone': None}

    def test_values(self):
        call = trait_plugin.load('map', {'values': self.VALUES})
        self.assertGives(1, call, 'ACTIVE')
        self.assertGives('five', call, 5)
        self.assertGives(None, call, 'active')
        self.assertGives(None, call, 'gone')
        self.assertGives(None, call)
        self.assertGives(2, call, 'other', 'Error')

    def test_default(self):
        call = trait_plugin.load('map', {'values': self.VALUES,
                                         'default': 0})
        self.assertGives(0, call, 'other')
        self.assertGives(0, call, ['ACTIVE'])
        self.assertGives(0, call, {})
        self.assertGives(None, call)

    def test_case(self):
        call = trait_plugin.load('map', {'values': self.VALUES,
                                         'case_sensitive': False})
        self.assertGives(1, call, 'active')
        self.assertGives(2, call, 'ERROR')
        self.assertGives('five', call, 5)

    def test_refused(self):
        self.assertRefuses('map')
        self.assertRefuses('map', values={})
        self.assertRefuses('map', values=['a'])
        self.assertRefuses('map', values={'a': 1}, case_sensitive='no')


class TestCase(PluginTestCase):

    def test_cases(self):
        for case, wanted in (('lower', 'ab cd'), ('upper', 'AB CD'),
                             ('title', 'Ab Cd'), ('capitalize', 'Ab cd')):
            call = trait_plugin.load('case', {'case': case})
            self.assertGives(wanted, call, 'aB cD')
            self.assertGives(None, call)
        self.assertGives('ab', trait_plugin.load('case', {}), 'AB', 'CD')

    def test_refused(self):
        self.assertRefuses('case', case='format')
        self.assertRefuses('case', case=['lower'])


class TestDatetime(PluginTestCase):

    def test_formats(self):
        call = trait_plugin.load('datetime', {
            'formats': ['%d/%m/%Y %H.%M', '%a, %d %b %Y %H:%M:%S %z']})
        self.assertGives(
            datetime.datetime(2012, 3, 12, 17, 1, tzinfo=UTC),
            call, '12/03/2012 17.01')
        self.assertGives(
            datetime.datetime(2012, 3, 12, 16, 1, 5, tzinfo=UTC),
            call, 'Mon, 12 Mar 2012 17:01:05 +0100')
        self.assertGives(None, call)
        self.assertRaises(ValueError, call, matches('2012-03-12'))

    def test_one_format(self):
        call = trait_plugin.load('datetime', {'formats': '%Y%m%d%H'})
        self.assertGives(datetime.datetime(2012, 3, 12, 17, tzinfo=UTC),
                         call, '2012031217')
        self.assertGives(datetime.datetime(2012, 3, 12, 17, tzinfo=UTC),
                         call, 2012031217)

    def test_refused(self):
        self.assertRefuses('datetime')
        self.assertRefuses('datetime', formats=[])
        self.assertRefuses('datetime', formats=[5])
        self.assertRefuses('datetime', formats='%Y-%Q')


class TestAuditPeriod(PluginTestCase):

    def test_parts(self):
        for parameters, wanted in (
                ({}, (12, 6)), ({'part': 'ending'}, (13, 6)),
                ({'which': 'containing'}, (13, 6)),
                ({'which': 'containing', 'part': 'ending'}, (14, 6))):
            call = trait_plugin.load(
                'audit_period', {'period': 'day@6', **parameters})
            self.assertGives(datetime.datetime(2012, 3, *wanted, tzinfo=UTC),
                             call, '2012-03-13 17:01')
            self.assertGives(None, call)
        self.assertRaises(ValueError, call, matches('x'))

    def test_refused(self):
        self.assertRefuses('audit_period')
        self.assertRefuses('audit_period', period='week')
        self.assertRefuses('audit_period', period='day', part='middle')
        self.assertRefuses('audit_period', period='day', which='next')


class CeilometerPlugin:
    """As plugins for Ceilometer are."""

    support_return_all_values = True

    def __init__(self, word='x', **kw):
        super().__init__()
        self.word = word

    def trait_values(self, match_list):
        return [None if value == 'skip' else f'{self.word}-{value}'
                for _, value in match_list]


class NullPlugin:

    def trait_values(self, match_list):
        return None


class TestLoad(PluginTestCase):

    def load(self, installed, name, **parameters):
        """Load a plugin where those of a dict are installed."""
        def load(namespace, name):
            try:
                return installed[namespace][name]
            except KeyError:
                raise exceptions.PluginError(f'no {name}') from None

        with mock.patch.object(plugins, 'load', load), mock.patch.object(
                plugins, 'names', lambda space: installed.get(space, ())):
            return trait_plugin.load(name, parameters)

    def test_for_ceilometer(self):
        call = self.load(
            {plugins.TRAIT_PLUGIN: {'own': CeilometerPlugin}}, 'own',
            word='w')
        self.assertGives('w-1', call, 1, 2)
        self.assertGives('w-2', call, 'skip', 2)
        self.assertGives(None, call, 'skip')
        self.assertGives(None, call)
        self.assertGives(None, self.load(
            {plugins.TRAIT_PLUGIN: {'null': NullPlugin}}, 'null'))

    def test_ceilometers_namespace(self):
        installed = {
            'ceilometer.event.trait_plugin': {
                'own': CeilometerPlugin, 'split': CeilometerPlugin},
            plugins.TRAIT_PLUGIN: {'split': trait_plugins.SplitPlugin}}
        self.assertGives('x-a.b', self.load(installed, 'own'), 'a.b')
        self.assertGives('a', self.load(installed, 'split'), 'a.b')
        self.assertRaises(exceptions.PluginError, self.load, installed,
                          'none')

    def test_no_plugin(self):
        error = self.assertRaises(
            exceptions.PluginError, trait_plugin.load, 'splitt', {})
        self.assertIn('split', str(error))
        self.assertRaises(
            exceptions.PluginError, self.load,
            {plugins.TRAIT_PLUGIN: {'object': object}}, 'object')

    def test_all_are_installed(self):
        self.assertLessEqual(
            {'split', 'bitfield', 'timedelta', 'map', 'case', 'datetime',
             'audit_period'}, set(plugins.names(plugins.TRAIT_PLUGIN)))
