"""The HTML page: content, safety against injected markup, notes."""

import base64
import dataclasses
import hashlib
import html.parser
import json
import re
import subprocess
import sys

import pytest

from configs.worlds import bandit
from experiments import report
from experiments.flags import configuration
from experiments.reports import curves as report_curves
from experiments.reports import html as report_html
from experiments.reports import rollouts as report_rollouts
from experiments.reports import workdirs as workdirs_lib
from experiments.tables import result_checks
from rl_jax import serialization
from rl_jax.worlds import Arithmetic

EVIL = '</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028'


class Page(html.parser.HTMLParser):
  """Elements with their attributes, and the text of each script and style."""

  def __init__(self, text):
    super().__init__()
    self.elements, self.raw, self._open = [], [], False
    self.text = ''
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.elements.append((tag, dict(attrs)))
    self._open = tag in ('script', 'style')
    if self._open:
      self.raw.append((tag, dict(attrs), ''))

  def handle_endtag(self, tag):
    self._open = False

  def handle_data(self, data):
    if self._open:
      tag, attrs, before = self.raw[-1]
      self.raw[-1] = (tag, attrs, before + data)
    else:
      self.text += data

  @property
  def data(self):
    (found,) = [t for _, attrs, t in self.raw if attrs.get('id') == 'data']
    return json.loads(found)


def metric_rows(steps, **series):
  return [
    {'step': i, 'reward/mean': i / 10, 'rollout/tokens_total': 100 * i}
    | {name: values[i - 1] for name, values in series.items()}
    for i in range(1, steps + 1)
  ]


def rollout(step, sample=0, text='a', **changes):
  return {
    'step': step,
    'prompt_id': 3,
    'sample': sample,
    'prompt': 'What?',
    'response': text,
    'answer': 'b',
    'reward': 1.0,
    'error': None,
    'tokens': {'text': [text, ''], 'entropy': [0.5, 0.25]},
  } | changes


def config(method='grpo', **changes):
  found = bandit.get_config(configuration.load_method(method))
  return dataclasses.replace(found, **changes)


def write(path, rows=(), rollouts=None, config=None, tail=''):
  path.mkdir(parents=True)

  def lines(rows):
    return ''.join(json.dumps(row) + '\n' for row in rows)

  (path / 'metrics.jsonl').write_text(lines(rows) + tail)
  if rollouts is not None:
    (path / 'rollouts.jsonl').write_text(lines(rollouts))
  if config is not None:
    (path / 'experiment.json').write_text(serialization.to_json(config))
  return str(path)


def page(*paths, **options):
  runs = workdirs_lib.read_runs(paths)
  return Page(report_html.render('title', runs, **options))


def test_what_a_model_wrote_is_never_markup(tmp_path):
  """Markup in texts, tokens, errors, paths and metric names stays data."""
  evil = rollout(1, text=EVIL, prompt=EVIL, answer=EVIL, error=EVIL)
  name = EVIL.replace('/', '|')
  rows = [row | {EVIL: 1.0} for row in metric_rows(2)]
  path = write(tmp_path / name, rows, [evil], tail='{"step"')
  found = page(path)
  tags = [tag for tag, _ in found.elements]
  assert tags.count('script') == 2 and 'img' not in tags
  assert not any(key.startswith('on') for _, a in found.elements for key in a)
  (run,) = found.data['rollouts']
  assert run['rows'][0]['tokens']['text'] == [EVIL, '']
  assert run['rows'][0]['error'] == EVIL and run['prompts'] == [EVIL]
  assert EVIL in found.data['curves']['runs'][0]['metrics']
  assert name in found.text


def test_rewards_and_episodes_are_among_the_main_curves(tmp_path):
  """Whatever their names are; what has no panel stays collapsed."""
  series = {
    'reward/outcome': [0.0, 1.0],
    'episode/turns': [2.0, 3.0],
    'time/wall_seconds': [1.0, 2.0],
  }
  found = page(write(tmp_path / 'a', metric_rows(2, **series)))
  first = ['reward/mean', 'reward/outcome', 'episode/turns']
  assert found.data['panels'] == [*first, *report_html.PANELS[1:]]


def test_an_episode_has_one_panel(tmp_path):
  """Turns with what was understood, calls and the parts of the reward."""
  turns = [
    {'observation': '?', 'action': ' up', 'understood': 'up', 'calls': 2}
    | {'rewards': {'outcome': 0.0, 'step': -0.25}},
    {'observation': '<', 'action': 'down', 'understood': 'down'}
    | {'rewards': {'outcome': 1.0, 'step': 'NaN'}},
  ]
  row = rollout(1, turns=turns, end='done', last_observation='>')
  found = page(write(tmp_path / 'a', metric_rows(1), [row]))
  (shown,) = found.data['rollouts'][0]['rows']
  one, two = shown['turns']
  assert one['calls'] == 2 and one['understood'] == 'up'
  assert two['calls'] == 0 and two['understood'] is None
  assert two['rewards'] == {'outcome': 1.0, 'step': None}
  assert (shown['end'], shown['last']) == ('done', '>')
  ids = {attrs.get('id') for _, attrs in found.elements}
  assert {'episodes', 'open-all'} <= ids
  assert 'what it said' in found.text and 'what it did' in found.text


def test_the_page_loads_nothing_and_its_policy_names_its_own_script(tmp_path):
  """No addresses but its own anchors; hashes match script and style."""
  found = page(write(tmp_path / 'a', metric_rows(2), [rollout(1)]))
  (policy,) = [a['content'] for _, a in found.elements if 'http-equiv' in a]
  for tag, attrs, text in found.raw:
    if attrs.get('type') != 'application/json':
      digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
      assert f"{tag}-src 'sha256-{digest}'" in policy
  assert policy.startswith("default-src 'none'")
  for _, attrs in found.elements:
    assert 'src' not in attrs and 'style' not in attrs
    assert attrs.get('href', '#').startswith('#')
  (script,) = [t for tag, a, t in found.raw if tag == 'script' and not a]
  assert 'innerHTML' not in script and '@import' not in str(found.raw)
  assert re.search(r"^'use strict';", script)


def test_runs_lie_on_one_grid_of_iterations(tmp_path):
  """Rewards 1, 2 and 3, 4; a seed that is late has no value yet."""
  for name, start, steps in (('one', 1.0, 2), ('two', 3.0, 1)):
    rows = metric_rows(steps, **{'reward/mean': [start, start + 1]})
    write(tmp_path / name, rows, config=config(seed=steps))
  found = report_curves.collect(workdirs_lib.read_runs([str(tmp_path)]))
  assert found['steps'] == [1, 2] and found['iterations'] == 2
  one, two = found['runs']
  assert one['label'] == two['label'] == 'one'
  assert (one['name'], two['name']) == ('one, seed 2', 'one, seed 1')
  assert one['fields'] == {'seed': '2'} and one['x']['tokens'] == [100, 200]
  series = {'mean': [1, 2], 'gaps': [], 'bad': 0}
  assert one['metrics']['reward/mean'] == series
  assert two['metrics']['reward/mean']['mean'] == [3, None]
  assert found['quantiles'] == [None, 12.7062]  # of two runs, one degree
  ends = report_curves.ends(found, ['reward/mean', 'other'])
  assert ends == {
    'labels': ['one'],
    'rows': [('reward/mean', ['2 \u2192 2'])],
  }


def test_values_that_are_not_finite_are_gaps_and_counted(tmp_path):
  """Missing values are not gaps: evaluations are every few iterations."""
  rows = metric_rows(3, **{'train/loss': [1.0, 'NaN', 'Infinity']})
  rows[2]['evaluation/pass_at_1'] = 0.5
  rows[2]['train/skipped'] = 1.0
  path = write(tmp_path / 'a', rows)
  (run,) = workdirs_lib.read_runs([path])
  assert 'FAILED: train/loss not finite in the last row' in run.notes
  assert '1 iterations had a step that was not finite' in run.notes
  found = report_curves.collect([run])['runs'][0]['metrics']
  assert found['train/loss']['mean'] == [1, None, None]
  assert (found['train/loss']['gaps'], found['train/loss']['bad']) == (
    [1, 2],
    2,
  )
  assert found['evaluation/pass_at_1']['mean'] == [None, None, 0.5]
  assert found['evaluation/pass_at_1']['gaps'] == []
  assert 'not finite' in page(path).text


def test_ten_thousand_iterations_keep_their_extremes(tmp_path):
  """400 means of 25 values; one outlier is visible in its band."""
  rows = [{'step': i, 'reward/mean': float(i == 5000)} for i in range(10_000)]
  found = page(write(tmp_path / 'a', rows))
  curves = found.data['curves']
  series = curves['runs'][0]['metrics']['reward/mean']
  assert curves['iterations'] == 10_000
  assert len(series['mean']) == len(curves['steps']) == 400
  assert series['mean'][200] == 0.04 and series['high'][200] == 1
  assert curves['steps'][0] == 12
  assert '10,000 iterations are drawn as 400 means' in found.text


def test_empty_states(tmp_path):
  """No metrics, no rollouts, one iteration, nothing but a configuration."""
  found = page(write(tmp_path / 'a'))
  assert (
    'No metrics yet' in found.text and 'metrics.jsonl is empty' in found.text
  )
  assert 'rollouts.jsonl is missing' in found.text
  one = page(write(tmp_path / 'b', metric_rows(1), []))
  assert one.data['curves']['runs'][0]['metrics']['reward/mean']['mean'] == [
    0.1
  ]
  assert 'rollouts.jsonl holds no response' in one.text
  (tmp_path / 'c').mkdir()
  text = serialization.to_json(config())
  (tmp_path / 'c' / 'experiment.json').write_text(text)
  assert 'metrics.jsonl is missing' in page(str(tmp_path / 'c')).text


def test_half_lines_are_left_out_and_named(tmp_path):
  """The last line, as an interrupted run leaves it, and others."""
  path = write(tmp_path / 'a', metric_rows(2), [rollout(1)], tail='{"step": 3')
  with open(tmp_path / 'a' / 'rollouts.jsonl', 'a') as file:
    file.write('{"step": 1, "prompt": \n{"step": 2, "pro')
  found = page(path)
  assert 'line 3 of metrics.jsonl is incomplete: left out' in found.text
  assert 'a line of iteration 1 in rollouts.jsonl is broken' in found.text
  assert len(found.data['rollouts'][0]['rows']) == 1
  (tmp_path / 'a' / 'metrics.jsonl').write_text('[1]\n{"step": 1}\n')
  rows, notes = workdirs_lib.read_lines(str(tmp_path / 'a' / 'metrics.jsonl'))
  assert rows == [{'step': 1}]
  assert notes == ['line 1 of metrics.jsonl is not a row: left out']


def test_rollouts_are_thinned_out_evenly_and_it_says_so(tmp_path):
  """The first and last are kept; a single step that is too large is cut."""
  sizes = dict.fromkeys(range(1, 101), 10)
  assert report_rollouts.choose(sizes, 1000) == list(range(1, 101))
  chosen = report_rollouts.choose(sizes, 50)
  assert len(chosen) == 5 and chosen[0] == 1 and chosen[-1] == 100
  assert report_rollouts.choose(sizes, 5) == [100]
  rollouts = [rollout(step, g) for step in (1, 2, 3) for g in range(4)]
  path = write(tmp_path / 'a', metric_rows(3), rollouts)
  size = len(json.dumps(rollouts[0])) + 1
  found = page(path, max_bytes=9 * size)
  (run,) = found.data['rollouts']
  assert run['steps'] == [1, 3] and len(run['rows']) == 8
  assert 'rollouts of 2 of 3 iterations are in this page' in found.text
  (run,) = page(path, max_bytes=2 * size).data['rollouts']
  assert run['steps'] == [3] and len(run['rows']) == 2


def test_rows_that_older_versions_wrote_are_shown_as_text(tmp_path):
  """A row without tokens; a reward that is not a number becomes None."""
  old = rollout(1, reward='NaN', error='ValueError')
  old.pop('tokens')
  found = page(write(tmp_path / 'a', metric_rows(1), [old]))
  (row,) = found.data['rollouts'][0]['rows']
  assert row['tokens'] == {} and row['reward'] is None
  assert row['response'] == 'a' and row['weight'] == 1


def test_bad_input_is_named(tmp_path):
  """Wrong workdirs, baselines and output paths."""
  path = write(tmp_path / 'a', metric_rows(1), config=config())
  with pytest.raises(ValueError, match="nowhere' is not a work directory"):
    workdirs_lib.read_runs([str(tmp_path / 'nowhere')])
  with pytest.raises(ValueError, match='given twice'):
    workdirs_lib.read_runs([path, path + '/'])
  with pytest.raises(ValueError, match="baseline: 'grop'. Did you mean 'grpo'"):
    page(path, baseline='grop')
  with pytest.raises(ValueError, match='is a directory'):
    report_html.check_writable(str(tmp_path))
  with pytest.raises(ValueError, match='cannot be written'):
    report_html.check_writable(f'{path}/metrics.jsonl/page.html')


def test_rollouts_of_an_unreadable_configuration_are_shown(tmp_path):
  """The page says why, and has no difference to show."""
  one = write(tmp_path / 'one', metric_rows(1), [rollout(1)], config())
  two = write(tmp_path / 'two', metric_rows(1), [rollout(1)])
  (tmp_path / 'two/experiment.json').write_text('{"class": "os.x"}')
  found = page(one, two)
  assert 'experiment.json is damaged' in found.text
  assert [run['name'] for run in found.data['rollouts']] == ['one', 'two']


def test_answers_are_shown_as_a_person_reads_them(tmp_path):
  """Digits from the last to the first; other tasks have no such fields."""
  task = dataclasses.replace(config(), task=Arithmetic(reverse=True))
  written = [rollout(1, answer='48', text='48')]
  (run,) = page(write(tmp_path / 'a', [], written, task)).data['rollouts']
  assert (
    run['rows'][0]['answer_read'] == run['rows'][0]['response_read'] == '84'
  )
  (run,) = page(write(tmp_path / 'b', [], written, config())).data['rollouts']
  assert not {'answer_read', 'response_read'} & run['rows'][0].keys()


def test_a_page_that_is_watched_loads_itself_again(tmp_path):
  """Until Ctrl-C; the last one that is written does not."""
  written = []

  def sleep(seconds):
    assert seconds == 5
    if len(written) == 3:
      raise KeyboardInterrupt

  report.watch(written.append, 5, sleep)
  assert written == [5, 5, 5, 0]
  path = write(tmp_path / 'a', metric_rows(1))
  assert page(path, reload_seconds=5).data['reload'] == 5
  assert page(path).data['reload'] == 0


def test_configurations_are_compared_with_the_baseline(tmp_path):
  """Pieces as list_methods shows them, other fields by path."""
  one = write(tmp_path / 'one', metric_rows(1), config=config())
  two = config('clip_cov', iterations=7)
  two = write(tmp_path / 'two', metric_rows(1), config=two)
  (single,) = report_html.configurations(workdirs_lib.read_runs([two]), '')
  assert single['title'] == 'the method grpo \u2192 two'
  assert any('+ weights.ClipCovDrop(' in line for line in single['lines'])
  base, changed = report_html.configurations(
    workdirs_lib.read_runs([one, two]), ''
  )
  assert (base['title'], base['lines']) == ('grpo: the baseline', [])
  assert changed['lines'] == [*single['lines'], 'iterations: 60 -> 7']
  assert 'ClipCovDrop' in page(one, two).text


def test_a_table_alone_is_a_page(tmp_path):
  """No sections of runs; notes on missing and failed runs."""
  row = {'digest': 'd', 'name': 'd', 'setting': {}, 'last': {'x': 1.0}}
  path = tmp_path / 'results.jsonl'
  path.write_text(json.dumps(row) + '\n' + '{"half')
  table, notes = result_checks.read_page(
    str(path), 'x', None, ['d', 'e'], False
  )
  assert notes == ['1 of 2 runs are not finished']
  found = page(tables=[table], notes=notes)
  ids = {attrs.get('id') for _, attrs in found.elements}
  assert 'tables' in ids and not ids & {'curves', 'rollouts', 'configuration'}
  assert 'too few seeds' in found.text and notes[0] in found.text
  failed = row | {'failed': 'three steps in a row', 'setting': {'seed': 1}}
  path.write_text(json.dumps(row) + '\n' + json.dumps(failed) + '\n')
  _, notes = result_checks.read_page(str(path), 'x', None, None, False)
  assert notes == ['FAILED: all: 1 failed: three steps in a row']
  with pytest.raises(ValueError, match='holds no finished run'):
    result_checks.read_page(str(tmp_path / 'none'), 'x', None, None, False)


def test_the_command_writes_a_page_of_a_run_and_a_table(tmp_path):
  """The documented command in a process; mixed commits are marked."""
  path = write(tmp_path / 'run', metric_rows(3), [rollout(1)], config())
  results = [
    {
      'digest': f'{method}{seed}',
      'name': method,
      'setting': {'method': method, 'seed': seed},
      'commit': commit,
      'last': {'reward/mean': seed},
    }
    for method, commit in (('grpo', 'aaa'), ('dapo', 'bbb'))
    for seed in range(2)
  ]
  table = tmp_path / 'results.jsonl'
  table.write_text(''.join(json.dumps(row) + '\n' for row in results))
  out = tmp_path / 'new' / 'page.html'
  command = [sys.executable, '-m', 'experiments.report', f'--workdir={path}']
  command += [f'--results={table}', f'--out={out}', '--allow_mixed']
  done = subprocess.run(command, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  found = Page(out.read_text())
  assert ('h1', {}) in found.elements and 'method=dapo' in found.text
  assert 'MIXED: commits aaa (2 runs), bbb (2 runs)' in found.text
  assert not list(out.parent.glob('*.tmp'))
