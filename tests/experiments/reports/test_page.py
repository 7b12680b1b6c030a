"""Results of the script of a page, run by node without a page."""

import json
import shutil
import subprocess

import pytest

from experiments.reports import html as report_html

pytestmark = pytest.mark.skipif(not shutil.which('node'), reason='needs node')

# Checks of all functions in one process; each prints a name and a value.
CHECKS = r"""
const run = (values, more) => ({
  label: 'a', name: 'a', fields: {},
  x: {tokens: values.map((_, i) => 10 * i)},
  metrics: {y: {mean: values, gaps: [], bad: 0, ...more}},
});
const steps = (n) => [...Array(n).keys()];
const t = [null, 12.706, 4.303];
const of = (...runs) => joined(runs, 'y', 'tokens', steps(3), t);
const line = (values) => values.map((y, x) => ({x, y, low: y, high: y}));
const rise = (n) => steps(n).map((i) => i / n);
const spiked = rise(40);
spiked[20] = 1e6;
const four = [['grpo', 1], ['grpo', 2], ['rloo', 1], ['rloo', 2]].map(
  ([method, seed]) => ({
    label: method, name: `${method} ${seed}`,
    fields: {method, seed: String(seed)},
  }));
const groups = (by, without) => groupsOf(visibleRuns(four, without), by)
  .map((group) => [group.name, group.runs.length]);
const order = (down, cells) => cells.sort((a, b) => cellOrder(a, b, down));
const rows = [[1, 'p'], [1, 'q'], [2, 'p'], [1, 'p']].map(
  ([step, id]) => ({step, id, prompt: 0}));
const results = {
  one: of(run([1, 2, 3], {low: [0, 2, 2], high: [1, 2, 9]})),
  two: of(run([1, 2, 3]), run([3, 4, 5])),
  three: of(run([1, 1, 1]), run([2, 1, 1]), run([3, 1, null])),
  broken: of(run([1, null, 3], {gaps: [1]})).map((p) => [p.x, p.broken]),
  missing: of({...run([1, 2, 3]), x: {}}).length,
  smooth: smooth(line([0, 3, 6, 0]), 3).map((p) => p.y),
  plain: range([line(rise(40))], true),
  spiked: range([line(rise(40)), line(spiked)], true),
  whole: range([line(spiked)], false).high,
  evaluations: range([line([0, 0.9, 0.95, 1, 1, 1])], true),
  constant: range([line([2, 2])], true),
  flat: range([line(steps(40).map((i) => Number(i === 3)))], true),
  ticks: ticks(0, 1, 6),
  log: [logTicks(1e-4, 1, 6), logTicks(2, 8, 6)],
  few: logTicks(1e-9, 1e9, 6).length,
  short: [short(25000), short(0.00012), show(null)],
  label: groups('label', []),
  method: groups('method', ['seed=2']),
  seed: groups('seed', []),
  each: groups('run', ['method=grpo']),
  fields: fieldsOf(four),
  sorted: order(true, ['0.5', 'failed', '+0.25', '[0.7, 0.9]', '-0.1']),
  ascending: order(false, ['2 (1 failed)', '10', '']),
  samples: sampleGroups(rows).map((g) => [g[0].step, g[0].id, g.length]),
};
console.log(JSON.stringify(results));
"""


@pytest.fixture(scope='module')
def found():
  """The results of the functions; the page itself is not started."""
  script = report_html.script_text()
  script, start, _ = script.partition('\nrestore();\n')
  assert start
  page = 'const document = {getElementById: () => ({textContent: "{}"})};'
  script = script.replace("'use strict';", f"'use strict';{page}", 1)
  done = subprocess.run(
    ['node', '-'], input=script + CHECKS, capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_the_script_is_javascript(tmp_path):
  """Node parses the whole of it."""
  path = tmp_path / 'page.js'
  path.write_text(report_html.script_text())
  subprocess.run(['node', '--check', str(path)], check=True)


def test_bands_of_groups(found):
  """One run's own, two values, and Student's t: 2 -+ 4.303 / sqrt(3)."""

  def ends(name):
    return [(p['y'], p['low'], p['high']) for p in found[name]]

  assert ends('one') == [(1, 0, 1), (2, 2, 2), (3, 2, 9)]
  assert ends('two') == [(2, 1, 3), (3, 2, 4), (4, 3, 5)]
  first, second, third = ends('three')
  assert first == pytest.approx((2, -0.4843, 4.4843), rel=1e-3)
  assert second == (1, 1, 1) and third == (1, 1, 1)
  assert [p['count'] for p in found['three']] == [3, 3, 2]


def test_gaps_and_axes(found):
  """Tokens are read from the run; a gap breaks the line; no x, no point."""
  assert found['broken'] == [[0, False], [20, True]]
  assert found['missing'] == 0


def test_smoothing_by_hand(found):
  """The means are those of `plot.smooth`, of 2, 3, 3 and 2 points."""
  assert found['smooth'] == [1.5, 3, 3, 3]


def test_outliers_are_cut_and_rises_are_not(found):
  """The limits are those of `plot.limits`."""
  assert found['plain'] == {'low': 0, 'high': 39 / 40, 'cut': False}
  assert found['spiked'] == {'low': 0, 'high': 39 / 40, 'cut': True}
  assert found['whole'] == 1e6
  assert found['evaluations'] == {'low': 0, 'high': 1, 'cut': False}
  assert found['constant'] == {'low': 1, 'high': 3, 'cut': False}
  assert found['flat'] == {'low': 0, 'high': 1, 'cut': False}


def test_ticks(found):
  assert found['ticks'] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
  assert found['log'][0] == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])
  assert found['log'][1] == [2, 5] and found['few'] <= 7
  assert found['short'] == ['25k', '1.2e\u22124', 'none']


def test_runs_are_filtered_and_grouped_by_a_field(found):
  assert found['label'] == [['grpo', 2], ['rloo', 2]]
  assert found['method'] == [['method grpo', 1], ['method rloo', 1]]
  assert found['seed'] == [['seed 1', 2], ['seed 2', 2]]
  assert found['each'] == [['rloo 1', 1], ['rloo 2', 1]]
  assert found['fields'] == {'method': ['grpo', 'rloo'], 'seed': ['1', '2']}


def test_columns_sort_by_the_number_a_cell_begins_with(found):
  """Text is last in both directions."""
  assert found['sorted'] == ['[0.7, 0.9]', '0.5', '+0.25', '-0.1', 'failed']
  assert found['ascending'] == ['2 (1 failed)', '10', '']


def test_samples_of_a_prompt_stand_together(found):
  assert found['samples'] == [[1, 'p', 2], [1, 'q', 1], [2, 'p', 1]]
