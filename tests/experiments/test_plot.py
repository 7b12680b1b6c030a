"""Curves: points, labels, the PNG and error messages."""

import json
import math
import struct
import subprocess
import sys

import numpy as np
import pytest

from experiments import plot


def write_run(path, slope, steps=20, **extra):
  path.mkdir(parents=True)
  rows = [
    {
      'step': i,
      'time/wall_seconds': 2.0 * i,
      'rollout/tokens_total': 100 * i,
      'reward/mean': slope * i,
      **extra,
    }
    for i in range(steps)
  ]
  text = ''.join(json.dumps(row) + '\n' for row in rows)
  (path / 'metrics.jsonl').write_text(text + '{"step": 99, "torn')


def png_size(path):
  data = path.read_bytes()
  assert data[:8] == b'\x89PNG\r\n\x1a\n'
  return struct.unpack('>II', data[16:24])


def test_the_command_writes_a_png_of_two_runs(tmp_path):
  """The documented command in a separate process; seeds are merged."""
  for seed in range(3):
    write_run(tmp_path / 'grpo' / f'seed{seed}', 1 + seed)
  write_run(tmp_path / 'dapo', 2.0, **{'policy/entropy': 'NaN'})
  runs = [tmp_path / 'dapo', *(tmp_path / 'grpo').iterdir()]
  out = tmp_path / 'new' / 'curves.png'
  done = subprocess.run(
    [
      sys.executable,
      '-m',
      'experiments.plot',
      *(f'--workdir={path}' for path in runs),
      f'--out={out}',
      '--x=tokens',
    ],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout == f'{out}: reward/mean, policy/entropy\n'
  assert 'no run has' not in done.stderr  # metrics of the default may be absent
  width, height = png_size(out)
  assert width > height > 300


def test_a_missing_or_repeated_workdir_is_named(tmp_path):
  write_run(tmp_path / 'a', 1)
  with pytest.raises(ValueError, match="nothing' is not a work directory"):
    plot.load_runs([str(tmp_path / 'nothing')])
  with pytest.raises(ValueError, match='given twice'):
    plot.load_runs([str(tmp_path / 'a'), f'{tmp_path}/a/'])
  (tmp_path / 'b').mkdir()
  (tmp_path / 'b' / 'metrics.jsonl').write_text('')
  with pytest.raises(ValueError, match='no run has metrics yet: .*b: metrics'):
    plot.load_runs([str(tmp_path / 'b')])


def test_bands_are_intervals_of_the_mean():
  """1, 2, 3: 2 -+ 4.303 / sqrt(3); of two seeds from one to the other."""
  low, high = plot.band(np.array([[1.0, 5], [2, 5], [3, 5]]))
  np.testing.assert_allclose(low, [-0.48414, 5], rtol=1e-4)
  np.testing.assert_allclose(high, [4.48414, 5], rtol=1e-4)
  low, high = plot.band(np.array([[1.0], [2.0]]))
  assert (low, high) == (1, 2)


def test_an_outlier_does_not_flatten_a_plot():
  """It is cut where it lies further from the curve than the curve is high."""
  rise = np.linspace(0, 1, 40)
  assert plot.limits([rise]) is None
  assert plot.limits([np.eye(40)[3]]) is None  # flat otherwise
  assert plot.limits([np.array([0, 0.9, 0.95, 1, 1, 1.0])]) is None
  spiked = rise.copy()
  spiked[20] = 1e6
  low, high = plot.limits([rise, spiked])
  assert -0.1 < low < 0 and 1 < high < 1.1
  assert plot.limits([]) is None


def test_curve_leaves_out_missing_and_non_finite_points():
  rows = [
    {'step': 0, 'y': 1.0},
    {'step': 1},
    {'step': 2, 'y': math.nan},
    {'step': 3, 'y': math.inf},
    {'step': 4, 'y': 5},
  ]
  xs, ys = plot.curve(rows, 'step', 'y')
  np.testing.assert_array_equal(xs, [0, 4])
  np.testing.assert_array_equal(ys, [1, 5])
  assert len(plot.curve(rows, 'step', 'z')[0]) == 0


def test_smooth_by_hand():
  """Window 3 of 0, 3, 6, 0: means of 2, 3, 3 and 2 points."""
  ys = plot.smooth(np.array([0.0, 3.0, 6.0, 0.0]), 3)
  np.testing.assert_allclose(ys, [1.5, 3, 3, 3])
  np.testing.assert_allclose(plot.smooth(np.ones(2), 9), [1, 1])


def test_a_metric_that_no_run_has_is_named(tmp_path):
  """Those beside it are drawn."""
  write_run(tmp_path / 'run', 1.0)
  command = [sys.executable, '-m', 'experiments.plot']
  command += [f'--workdir={tmp_path / "run"}', f'--out={tmp_path / "x.png"}']
  done = subprocess.run(
    [*command, '--metrics=reward/mean,reward/typo'],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout.endswith('x.png: reward/mean\n')
  assert 'no run has reward/typo' in done.stderr


def test_unknown_metrics_list_what_exists(tmp_path):
  rows = [{'step': 0, 'reward/mean': 1.0}]
  with pytest.raises(ValueError, match='there are: reward/mean, step'):
    plot.plot_curves({'a': [rows]}, tmp_path / 'x.png', metrics=('typo',))
  assert not (tmp_path / 'x.png').exists()


@pytest.mark.parametrize('log', [False, True])
@pytest.mark.parametrize(
  'values',
  [
    ['Infinity'] * 30,
    [1.0, '-Infinity', 2.0, 'NaN'],
    [10**400, 1, -(10**400)],
    [1.7e308] * 25,
    [1.7e308, -1.7e308] * 20,
    [1e200, -1e200, 0.0] * 10,
  ],
)
def test_values_that_cannot_be_drawn_name_their_run(
  tmp_path, capsys, values, log
):
  """The others are drawn; nothing fails in the library of plots."""
  for name, column in (('good', [0.5] * len(values)), ('bad', values)):
    (tmp_path / name).mkdir()
    rows = [{'step': i, 'reward/mean': x} for i, x in enumerate(column)]
    text = ''.join(json.dumps(row) + '\n' for row in rows)
    (tmp_path / name / 'metrics.jsonl').write_text(text)
  names = ['reward/mean']
  runs = plot.load_runs([str(tmp_path / x) for x in ('good', 'bad')], names)
  out = tmp_path / 'x.png'
  plot.plot_curves(runs, out, metrics=names, window=3, log=log)
  assert png_size(out)[0] > 300
  said = capsys.readouterr().err
  count = sum(isinstance(x, str) or abs(x) > 1e200 for x in values)
  text = (
    f'{tmp_path}/bad: {count} of {len(values)} values of reward/mean are inf'
  )
  assert (text in said) == (count > 0) and '/good: ' not in said
