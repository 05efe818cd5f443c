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

"""Criteria: constants, expressions, and what a storage can narrow by."""

import datetime

import hypothesis
from hypothesis import strategies as st

from triggerlib import criteria
from triggerlib.event import event as event_module
from triggerlib import yamlfile

from tests import base

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)


def load(text, allowed=criteria.KEYS):
    document = yamlfile.parse(text, 'c.yaml')
    problems = []
    return criteria.Criterion.load(
        document, (), problems, allowed=allowed), problems


def event(event_type='x', timestamp=NOON, **traits):
    return event_module.Event('m', event_type, timestamp, traits)


VALUES = st.one_of(
    st.text(), st.integers(), st.floats(allow_nan=False),
    st.datetimes(timezones=st.just(UTC)), st.sampled_from([
        'a', '5', '> 10', 5, 5.0, 0, 0.0, -0.0, 2 ** 63, 10 ** 400,
        'first + 1h', NOON, NOON + datetime.timedelta(hours=1)]))
WANTED = st.recursive(
    st.one_of(
        VALUES,
        st.sampled_from([
            'is NULL', 'is not NULL', '> 10', '!= a', '<= 2026-03-01',
            '2026-03-01T12:00', 'first', '>= first', 'first to last + 1h',
            'day($first)', 'day(timestamp)', '$begin + 1h',
            'rack-3m', '!= rack-3m', {'text': '> 10'}, {'int': '> 4'},
            {'int': 5}, {'float': 5}, {'float': '< 1e3'},
            {'datetime': '> first'}, {'datetime': 'day'}, {'glob': 'a*'},
            {'regex': '[a-z]+'}])),
    lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=3)


class TestTraits(base.TestCase):
    """One trait against what is wanted of it."""

    def assertMatches(self, wanted, values, others=()):
        criterion, problems = load(f'traits: {{t: {wanted}}}')
        self.assertEqual([], problems)
        for value in values:
            self.assertTrue(criterion.matches(
                event(t=value), NOON, NOON), (wanted, value))
        for value in others:
            self.assertFalse(criterion.matches(
                event(t=value), NOON, NOON), (wanted, value))

    def test_constants(self):
        self.assertMatches('active', ['active'], ['Active', 'active ', 1])
        self.assertMatches('5', [5, 5.0], ['5', 6, NOON])
        self.assertMatches('5.5', [5.5], [5, '5.5'])
        self.assertMatches('"5"', ['5'], [5])
        self.assertMatches('2026-03-01T12:00:00Z', [NOON], ['x', 5])
        self.assertMatches('"2026-03-01 12:00:00"',
                           [NOON, '2026-03-01 12:00:00'],
                           ['2026-03-01T12:00:00'])
        self.assertMatches(
            '2026-03-01', [NOON.replace(hour=0)], [NOON, '2026-03-01'])
        self.assertMatches('0', [0, 0.0, -0.0], ['0', ''])
        huge = 10 ** 400
        self.assertMatches(str(huge), [huge], [huge + 1, float('inf')])

    def test_words_of_the_time_language_are_plain_constants(self):
        for word in ('first', 'last', 'timestamp', 'day', 'to', 'hour',
                     'web-1', 'a-b-c', 'up to date', 'not a time'):
            self.assertMatches(f'"{word}"', [word], [NOON, 'other'])

    def test_what_looks_like_a_time_is_still_a_constant(self):
        for word in ('rack-3m', 'web-1d to web-2d', 'john@12:00',
                     'first-class', 'a + 1h', '2026-02-30'):
            self.assertMatches(f'"{word}"', [word], [NOON, 'other'])
        self.assertMatches('"!= rack-3m"', ['rack-4m'], ['rack-3m', 5, NOON])
        self.assertMatches('"> a to b"', ['b'], ['a', NOON])

    def test_quotes_make_a_text_of_what_is_compared(self):
        self.assertMatches("\"> '10'\"", ['11', '2'], ['1', 11])
        self.assertMatches("\"!= '2026-03-01'\"", ['x'],
                           ['2026-03-01', NOON])
        self.assertMatches("\"!= '$5'\"", ['x'], ['$5'])

    def test_comparisons_of_numbers(self):
        self.assertMatches('"> 10"', [11, 10.5], [10, 9, '11', NOON])
        self.assertMatches('">=10"', [10, 10.0], [9.9])
        self.assertMatches('"< 1"', [0, -5, 0.5], [1, '0'])
        self.assertMatches('"<= 1e3"', [1000, 1], [1001])
        self.assertMatches('"!= 4"', [5, 4.5], [4, 4.0, '5'])

    def test_comparisons_of_texts_and_datetimes(self):
        self.assertMatches('"> m"', ['n', 'ma'], ['a', 5, NOON])
        self.assertMatches('"!= error"', ['ok'], ['error', 5])
        self.assertMatches(
            '"> 2026-03-01"', [NOON], [NOON.replace(month=2), 'z'])
        self.assertMatches(
            '"<= first + 1h"', [NOON, NOON + datetime.timedelta(hours=1)],
            [NOON + datetime.timedelta(hours=2), 'a'])

    def test_null(self):
        criterion, _ = load('traits: {t: is NULL}')
        self.assertTrue(criterion.matches(event()))
        self.assertFalse(criterion.matches(event(t='')))
        criterion, _ = load('traits: {t: is not NULL}')
        self.assertFalse(criterion.matches(event()))
        self.assertTrue(criterion.matches(event(t='')))
        self.assertTrue(criterion.matches(event(t=0)))

    def test_a_missing_trait_matches_nothing_else(self):
        for wanted in ('5', 'a', '"!= 5"', '"!= a"', '[1, a]',
                       '{glob: "*"}', 'first + 1h', '"> 1"'):
            criterion, problems = load(f'traits: {{t: {wanted}}}')
            self.assertEqual([], problems)
            self.assertFalse(criterion.matches(event(), NOON, NOON), wanted)

    def test_lists_are_any_of(self):
        self.assertMatches('[active, 5, "> 100"]', ['active', 5, 101],
                           ['other', 6, 100])

    def test_explicit_patterns(self):
        self.assertMatches('{glob: "web-*"}', ['web-1', 'web-\n'],
                           ['Web-1', 'a web-1', 5])
        self.assertMatches("{regex: 'w\\d+'}", ['w1'], ['w', 'w1x', 1])
        self.assertMatches('"web-*"', ['web-*'], ['web-1'])

    def test_typed_forms(self):
        self.assertMatches('{int: "> 4"}', [5], [4, 5.5, '5'])
        self.assertMatches('{int: 4}', [4], [4.0])
        self.assertMatches('{float: "< 4"}', [3.5, 3], [4, '3'])
        self.assertMatches('{text: "> 10"}', ['> 10'], [11, '11'])
        self.assertMatches('{text: is NULL}', ['is NULL'], [1])
        self.assertMatches('{datetime: "2026-03-01 12:00"}', [NOON],
                           ['2026-03-01 12:00'])
        self.assertMatches('{datetime: first}', [NOON], ['first'])
        self.assertMatches(
            '{datetime: "> first"}',
            [NOON + datetime.timedelta(microseconds=1)], [NOON])

    def test_time_expressions_and_ranges(self):
        hour = datetime.timedelta(hours=1)
        self.assertMatches('first + 1h', [NOON + hour, 'first + 1h'],
                           [NOON])
        self.assertMatches(
            '"first@00:00 to last+2h"',
            [NOON, NOON.replace(hour=0), NOON + hour],
            [NOON + 2 * hour, NOON - 13 * hour])
        self.assertMatches('day($timestamp)', [NOON], [NOON + 12 * hour])

    def test_another_trait_in_an_expression(self):
        criterion, problems = load('traits: {t: "$begin to $begin + 1h"}')
        self.assertEqual([], problems)
        self.assertFalse(criterion.needs_list)
        self.assertTrue(criterion.matches(event(t=NOON, begin=NOON)))
        self.assertFalse(criterion.matches(event(t=NOON, begin='x')))
        self.assertFalse(criterion.matches(event(t=NOON)))

    def test_what_is_out_of_all_datetimes_does_not_match(self):
        criterion, _ = load('timestamp: "first to last + 9000y"')
        self.assertFalse(criterion.matches(event(), NOON, NOON))

    def test_each_mistake(self):
        for wanted, words in (
                ('!!binary aGk=', 'never a bytes'),
                ('!!set {a}', 'never a set'),
                ('&a [*a]', 'holds no lists'),
                ('[]', 'an empty list'),
                ('true', 'never true or false'),
                ('null', 'is NULL'),
                ('0001-01-01T00:00:00+05:00', 'out of all years'),
                ('"== 5"', 'what is equal is written alone'),
                ('"=> 5"', 'what is equal is written alone'),
                ('"<> 5"', 'the operators are'),
                ('"> "', 'nothing behind'),
                ('"> 2026-02-30"', 'can stand in quotes'),
                ('"> first to last"', 'is a range'),
                ('"> day($begin)"', 'is a range'),
                ('"last + 3 hours"', 'written {text: ...}'),
                ('"first-1H"', 'written {text: ...}'),
                ('"$5 off"', 'written {text: ...}'),
                ('"> $5"', 'can stand in quotes'),
                ('{datetime: 2026-02-30x}', '2026-02-30x'),
                ('{datetime: "2026-02-30"}', 'not a timestamp'),
                ('{datetime: "> day"}', 'is a range'),
                ('{datetime: 5}', 'takes a text'),
                ('{int: 4.5}', 'takes a whole number'),
                ('{int: "> 4.5"}', 'takes a whole number'),
                ('{float: x}', 'takes a number'),
                ('{int: true}', 'takes a whole number'),
                ('{text: 5}', 'quote it'), ('{glob: 5}', 'quote it'),
                ('{regex: "("}', 'not a regular expression'),
                ('{regex: "a{99999999999}"}', 'not a regular expression'),
                ('{regexp: a}', 'one of the keys'),
                ('{glob: a, text: b}', 'one of the keys')):
            criterion, problems = load(f'traits: {{t: {wanted}}}')
            self.assertIsNone(criterion, wanted)
            problem, = problems
            self.assertEqual('traits.t', problem.key)
            self.assertIn(words, problem.message)

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        st.one_of(
            st.integers(), st.floats(allow_nan=False),
            st.datetimes(timezones=st.just(UTC)),
            st.text().map(lambda text: {'text': text})),
        VALUES)
    def test_another_type_never_matches(self, constant, value):
        def kind(one):
            return float if isinstance(one, int) else type(one)

        wanted = constant['text'] if isinstance(constant, dict) else constant
        document = yamlfile.Document('c.yaml', {'traits': {'t': constant}},
                                     None)
        criterion = criteria.Criterion.load(document, (), [])
        self.assertEqual(
            kind(wanted) is kind(value) and wanted == value,
            criterion.matches(event(t=value)))

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        st.sampled_from(['>', '>=', '<', '<=', '!=']),
        st.one_of(st.integers(), st.sampled_from(
            ['2026-03-01', 'first', 'last + 1h', "'5'", "'x'"])),
        VALUES)
    def test_comparisons_never_cross_types(self, sign, operand, value):
        document = yamlfile.Document(
            'c.yaml', {'traits': {'t': f'{sign} {operand}'}}, None)
        criterion = criteria.Criterion.load(document, (), [])
        if isinstance(operand, int):
            types = int, float
        else:
            types = str if operand[0] == "'" else datetime.datetime
        if criterion.matches(event(t=value), NOON, NOON):
            self.assertIsInstance(value, types)

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        st.one_of(st.text(), st.integers(), st.floats(), st.datetimes(
            timezones=st.just(UTC)), st.sampled_from([
                '> 10', '!= a', 'first + 1h', 'day', 'is NULL', '$a + 1h',
                '>= $first', 'first to last'])),
        st.one_of(st.text(), st.integers(), st.floats(allow_nan=False),
                  st.datetimes(timezones=st.just(UTC))))
    def test_nothing_raises(self, wanted, value):
        document = yamlfile.Document('c.yaml', {'traits': {'t': wanted}},
                                     None)
        problems = []
        criterion = criteria.Criterion.load(document, (), problems)
        if criterion is None:
            self.assertEqual(1, len(problems))
            return
        criterion.matches(event(t=value), NOON, NOON)

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(st.text())
    def test_a_text_is_refused_or_equals_itself(self, text):
        hypothesis.assume(text.lower().split() not in (
            ['is', 'null'], ['is', 'not', 'null']))
        hypothesis.assume(not text.lstrip().startswith(('<', '>', '!=')))
        document = yamlfile.Document('c.yaml', {'traits': {'t': text}}, None)
        problems = []
        criterion = criteria.Criterion.load(document, (), problems)
        if criterion is None:
            self.assertIn('{text: ...}', str(problems))
        else:
            self.assertTrue(criterion.matches(event(t=text), NOON, NOON))


class TestCriterion(base.TestCase):
    """The keys of a criterion."""

    def test_event_types(self):
        criterion, _ = load(
            'event_type: ["compute.*", "!compute.b", exact]')
        for name, wanted in (('compute.a', True), ('compute.b', False),
                             ('exact', True), ('other', False)):
            self.assertEqual(wanted, criterion.matches(event(name)), name)
            self.assertEqual(wanted, criterion.matches_type(name))

    def test_only_exclusions_leave_everything_else(self):
        criterion, _ = load('event_type: "!a.*"')
        self.assertTrue(criterion.matches(event('b')))
        self.assertFalse(criterion.matches(event('a.b')))

    def test_timestamp(self):
        criterion, _ = load('timestamp: "first to last"')
        self.assertTrue(criterion.needs_list)
        later = NOON + datetime.timedelta(hours=1)
        self.assertTrue(criterion.matches(event(), NOON, later))
        self.assertFalse(criterion.matches(
            event(timestamp=later), NOON, later))
        criterion, _ = load('timestamp: "> 2026-03-01"')
        self.assertFalse(criterion.needs_list)
        self.assertTrue(criterion.matches(event()))
        for text in ('2026-03-01T12:00:00Z', '"2026-03-01 12:00"',
                     '"2026-03-01T13:00+01:00"'):
            criterion, problems = load(f'timestamp: {text}')
            self.assertEqual([], problems)
            self.assertTrue(criterion.matches(event()))
            self.assertFalse(criterion.matches(event(timestamp=later)))

    def test_timestamps_that_are_none(self):
        for text in ('5', 'true', '[first]', '"> day"', '"2026-02-30"',
                     'active to', '0001-01-01T00:00:00+05:00'):
            criterion, problems = load(f'timestamp: {text}')
            self.assertIsNone(criterion, text)
            self.assertEqual(['timestamp'], [one.key for one in problems])

    def test_matches_alone_leaves_the_list_open(self):
        criterion, _ = load(
            'event_type: x\ntimestamp: "first + 1h to last"\n'
            'traits: {t: 5}')
        self.assertTrue(criterion.matches_alone(event(t=5)))
        self.assertFalse(criterion.matches_alone(event(t=6)))
        self.assertFalse(criterion.matches(event(t=5), NOON, NOON))

    def test_mistakes_are_placed(self):
        document = yamlfile.parse(
            'a:\n'
            '  - event_typ: x\n'
            '    number: -1\n'
            '    traits:\n'
            '      good: 1\n'
            '      bad: "> "\n'
            '      worse: {int: x}\n'
            '      null_: null\n'
            '      flag: true\n'
            '    timestamp: first +\n', 'c.yaml')
        problems = []
        self.assertIsNone(criteria.Criterion.load(
            document, ('a', 0), problems, definition='d',
            allowed=criteria.KEYS))
        self.assertEqual(
            [2, 3, 6, 7, 8, 9, 10], sorted(one.line for one in problems))
        texts = [str(one) for one in problems]
        self.assertIn("did you mean 'event_type'", ' '.join(texts))
        self.assertIn("'a[0].traits.bad'", ' '.join(texts))
        self.assertTrue(all("definition 'd'" in text for text in texts))

    def test_keys_that_are_not_for_here(self):
        criterion, problems = load('number: 2', allowed=('event_type',))
        self.assertIsNone(criterion)
        self.assertIn("no key 'number' here", str(problems[0]))


class TestQuery(base.TestCase):
    """What a storage can narrow by never loses what matches."""

    def test_facts(self):
        criterion, _ = load(
            'event_type: [b, a]\n'
            'timestamp: "first to last + 1h"\n'
            'traits: {t: x, n: 5, any: [1, y], free: "> 4"}')
        query = criterion.query(NOON, NOON)
        self.assertEqual(('a', 'b'), query.event_types)
        self.assertEqual(NOON, query.begin)
        self.assertEqual(NOON + datetime.timedelta(hours=1), query.end)
        self.assertEqual(('x',), query.traits['t'])
        self.assertEqual({5}, set(query.traits['n']))
        self.assertEqual([int, float],
                         [type(one) for one in query.traits['n']])
        self.assertEqual({1, 'y'}, set(query.traits['any']))
        self.assertNotIn('free', query.traits)

    def test_equal_numbers_are_looked_for_in_each_form(self):
        for wanted, values in (
                ('0', [0, 0.0, -0.0]), ('-0.0', [0, 0.0, -0.0]),
                ('5.0', [5.0, 5]), ('5.5', [5.5]), ('{int: 5}', [5]),
                ('[1, 2.5]', [1, 1.0, 2.5]), (str(10 ** 400), [10 ** 400])):
            criterion, problems = load(f'traits: {{t: {wanted}}}')
            self.assertEqual([], problems)
            self.assertEqual(
                sorted(map(repr, values)),
                sorted(map(repr, criterion.query(NOON, NOON).traits['t'])))

    def test_globs_narrow_nothing(self):
        criterion, _ = load('event_type: "a*"\ntimestamp: day')
        self.assertEqual(criteria.EventQuery(),
                         criterion.query(NOON, NOON))

    def test_comparisons_of_the_timestamp_are_facts(self):
        tick = datetime.timedelta(microseconds=1)
        hour = datetime.timedelta(hours=1)
        for text, begin, end in (
                ('> first', NOON, None), ('>= first + 1h', NOON + hour, None),
                ('< last', None, NOON), ('<= last', None, NOON + tick),
                ('!= last', None, None), ('first', NOON, NOON),
                ('2026-03-01 12:00', NOON, NOON),
                ('> last + 9000y', None, None)):
            criterion, problems = load(f'timestamp: "{text}"')
            self.assertEqual([], problems)
            query = criterion.query(NOON, NOON)
            self.assertEqual((begin, end), (query.begin, query.end), text)

    @hypothesis.settings(deadline=None, max_examples=500)
    @hypothesis.given(
        WANTED, VALUES,
        st.sampled_from([
            None, 'first', '> first', '<= last', '!= last', 'day(first)',
            'first - 1h to last', 'last to first', 'hour', NOON]),
        st.sampled_from([['x'], ['x', '!x'], ['*', '!y'], ['y', 'x']]),
        st.integers(-2, 2), st.integers(0, 2))
    def test_what_matches_is_never_left_out(
            self, wanted, value, timestamp, event_type, hours, length):
        hour = datetime.timedelta(hours=1)
        data = {'event_type': event_type, 'traits': {'t': wanted}}
        if timestamp is not None:
            data['timestamp'] = timestamp
        criterion = criteria.Criterion.load(
            yamlfile.Document('c.yaml', data, None), (), [])
        hypothesis.assume(criterion is not None)
        one = event(timestamp=NOON + hours * hour, t=value, begin=NOON)
        first, last = NOON, NOON + length * hour
        if criterion.matches(one, first, last):
            self.assertTrue(
                admits(criterion.query(first, last), one))


def admits(query, event):
    """Narrow as a driver does that has every trait in its index."""
    moment = event.timestamp
    if query.event_types is not None and (
            event.event_type not in query.event_types):
        return False
    if query.begin is not None and moment < query.begin:
        return False
    if query.end is not None and moment >= query.end and not (
            moment == query.begin == query.end):
        return False
    return all(
        repr(event.traits.get(name)) in map(
            repr, values if isinstance(values, tuple) else [values])
        for name, values in query.traits.items())
