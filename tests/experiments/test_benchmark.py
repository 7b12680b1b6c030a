"""FLOP, ratios, timing and the output line of the benchmark."""

import functools
import json
import subprocess
import sys
import types

import pytest

from experiments.benchmarks import ratios, timing
from rl_jax.models import presets
from rl_jax.planning import costs

STAGES = ('generate', 'score', 'update')
TINY = presets.small(
  vocab_size=10, width=4, num_kv_heads=1, head_size=2, mlp_size=8
)


def test_flop_by_hand():
  """Per layer 4 (8 + 4 + 24) = 144 weights, output 40; 1 prompt of 3 tokens, 2
  rows of 2: 5 tokens are fed, 4 are scored, 6 + 2 * 4 positions are seen.
  2 * 5 * 2 * 144 + 4 * 14 * 2 * 4 + 2 * 4 * 40 = 3648; an update is three
  times that."""
  shape = costs.Shape(1, 2, 3, 2)
  assert costs.model_flops(TINY, shape, 'generate') == 3648
  assert costs.model_flops(TINY, shape, 'update') == 3 * 3648
  assert costs.model_flops(TINY, shape, 'step') == 4 * 3648


def test_seconds_a_token_of_rows_that_end_together():
  """By hand: 512 tokens in 1.5 times the seconds of 64 * 16, half as many, and
  in 4 times those of 256 * 4, twice as many."""
  times = {
    'generate': [3.0, 5.0, 4.0],
    'full_width': [2.0, 2.0, 4.0],
    'equal_lengths': [1.0, 1.0, 1.0],
  }
  shape = costs.Shape(32, 8, 3, 16)
  stages = types.SimpleNamespace(reserved_over_needed=2.5)
  found = ratios.compared(stages, shape, 'generate', times, 512, 4.0)
  assert found == {
    'full_width_seconds_per_token': 2.0 / 1024,
    'times_full_width': 3.0,
    'times_equal_lengths': 8.0,
    'reserved_over_needed': 2.5,
  }


def test_the_stages_over_the_step_are_compared_in_turn():
  """By hand: 4/4, 7/7 and 6/8 of a step; the medians would give 6/7."""
  times = {
    'generate': [1.0, 3.0, 4.0],
    'update': [3.0, 4.0, 2.0],
    'step': [4.0, 7.0, 8.0],
  }
  stages = types.SimpleNamespace(capacity=None)
  shape = costs.Shape(8, 8, 3, 16)
  assert ratios.compared(stages, shape, 'step', times, 512, 0.0) == {
    'stage_seconds': {'generate': 3.0, 'update': 3.0},
    'stages_over_step': 1.0,
  }


def test_what_ragged_rows_are_compared_with():
  """64 rows of full length, and all rows of the mean length; without slots."""
  stages = types.SimpleNamespace(
    capacity=None, drafts=None, call=lambda stage: stage
  )
  made = []

  def make(shape, **options):
    made.append((shape.rows, shape.new_tokens, options))
    return stages

  shape = costs.Shape(32, 8, 3, 16)
  calls = ratios.calls_in_turn(stages, make, shape, 'generate', 4.2)
  assert list(calls) == ['generate', 'full_width', 'equal_lengths']
  assert calls['full_width']() == calls['equal_lengths']() == 'generate'
  options = {'mean_length': 0.0, 'slots': None, 'cache_tokens': None}
  assert made == [(64, 16, options), (256, 4, options)]


def test_seconds_in_turn():
  """A first call of each, then one untimed and one timed per turn."""
  called = []
  functions = {name: functools.partial(called.append, name) for name in 'ab'}
  times = timing.seconds_in_turn(functions, repeats=2, untimed=1)
  assert ''.join(called) == 'ab' + 2 * 'aabb'
  assert [len(seconds) for seconds in times.values()] == [2, 2]


@pytest.mark.parametrize(
  'groups, rows, stage, devices, message',
  [
    (3, 8, 'update', 2, 'num_prompts=3: 2 devices'),
    (8, 65, 'generate', 1, 'group_size=65: .* 64 rows'),
    (8, 24, 'generate', 1, 'group_size=24: .* 64 rows'),
    (8, 64, 'generate', 2, 'group_size=64: .* 64 rows.* of 2 devices'),
  ],
)
def test_groups_that_cannot_be_timed(groups, rows, stage, devices, message):
  """The message names the field and its value; fewer devices may have them."""
  shape = costs.Shape(groups, rows, 64, 128)
  with pytest.raises(ValueError, match=message):
    ratios.check_groups(shape, stage, 32.0, devices)
  ratios.check_groups(shape, 'update', 32.0, 1)


def test_bad_groups_are_refused_before_compiling():
  """One line names the flag."""
  found = subprocess.run(
    [sys.executable, '-m', 'experiments.benchmark', '--group_size=24']
    + ['--stage=generate', '--mean_length=32'],
    check=False,
    capture_output=True,
    text=True,
  )
  assert found.returncode == 2
  assert 'group_size=24' in found.stderr + found.stdout
  assert 'Traceback' not in found.stderr


def line(*flags):
  """The lines that a benchmark of two groups of two short rows prints."""
  out = subprocess.run(
    [
      sys.executable,
      '-m',
      'experiments.benchmark',
      '--num_prompts=2',
      '--group_size=2',
      '--prompt_tokens=4',
      '--new_tokens=4',
      '--repeats=2',
      *flags,
    ],
    check=True,
    capture_output=True,
    text=True,
  ).stdout
  return json.loads(out)


def printed(*flags):
  """The line of a benchmark that compares with plain products."""
  row = line(*flags)
  assert row['seconds_median'] > 0 and row['share_of_matrix_product'] > 0
  return row


@pytest.mark.slow
@pytest.mark.parametrize('stage', [*STAGES, 'step'])
def test_one_line_of_json(stage):
  """Every stage runs and reports its seconds and shares."""
  row = printed(f'--stage={stage}')
  used = {'step': {'generate', 'update'}}.get(stage, {'generate', stage})
  assert set(row['compile_seconds']) == used


@pytest.mark.slow
def test_drafts_are_timed_in_turn():
  """Calls draw the same tokens: what is remembered is accepted."""
  text = 'PreviousResponses(tokens=3,ngram=8)'
  row = printed('--stage=generate', '--group_size=1', f'--speculative={text}')
  assert row['times_plain'] > 0
  assert row['accepted_length'] == 3  # of four tokens, one after the prompt


@pytest.mark.slow
def test_pairs_are_timed():
  """A DPO step; flags that are given replace its own shape."""
  row = printed('--stage=pairs', '--preset=tiny')
  assert row['num_prompts'] == 2 and row['prompt_tokens'] == 4
  assert row['pairs_per_second'] > 0


@pytest.mark.slow
def test_environments_in_workers_are_waited_for():
  row = line('--stage=turns', '--preset=tiny', '--workers=2')
  assert row['workers'] == 2 and 0 < row['host_share'] < 1
