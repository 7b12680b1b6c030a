"""Linear rewards of features."""

import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.rewards.feature_reward import accuracy, fit, gaps
from rl_jax.tasks.base import Example, RecordedResponse


def test_one_feature_by_hand():
  """Three of four pairs agree: sigmoid(w) = 3/4, so w = ln 3; accuracy 3/4."""
  gap = np.array([[1.0], [1.0], [1.0], [-1.0]])
  assert fit(gap, 0.0)[0] == pytest.approx(np.log(3.0), rel=1e-6)
  assert accuracy(gap, np.array([1.1])) == 0.75
  assert accuracy(0 * gap, np.array([1.1])) == 0.5
  # ridge w = mean (1 - sigmoid(w gap)) gap, where the gradient is 0
  (w,) = fit(gap, 0.5)
  p = 1 / (1 + np.exp(-w))
  assert 0.5 * w == pytest.approx(0.75 * (1 - p) - 0.25 * p, abs=1e-9)


def test_order_of_features_and_pairs_changes_nothing():
  """E0; a feature that is equal in both responses has weight 0."""
  rng = np.random.default_rng(0)
  gap = rng.normal(size=(60, 3)) + [1.0, -0.5, 0.0]
  gap[:, 2] = 0.0
  found = fit(gap, 1e-3)
  assert found[0] > 0 > found[1] and found[2] == 0.0
  shuffled = fit(rng.permutation(gap)[:, [2, 0, 1]], 1e-3)
  np.testing.assert_allclose(shuffled, found[[2, 0, 1]], rtol=1e-6)


FEATURES = """
def right(example, response):
  return float(response == example.answer)

def length(example, response):
  return len(response)
"""


@pytest.mark.slow
def test_the_command_finds_what_decides(tmp_path):
  """Pairs of the right answer and one with a wrong digit, of equal length."""
  path = tmp_path / 'features.py'
  path.write_text(FEATURES)
  command = [
    sys.executable,
    '-m',
    'experiments.papers.preferences.fit_feature_reward',
  ]
  command += ['--config=configs/worlds/preferences.py', '--pairs=40']
  command += [f'--reward={path}:{name}' for name in ('right', 'length')]
  run = subprocess.run(command, capture_output=True, text=True)
  assert run.returncode == 0, run.stderr
  found = json.loads(run.stdout)
  assert found['held_out_accuracy'] == 1.0 and found['pairs'] == 40
  assert found['weights']['right'] > 1.0 and found['weights']['length'] == 0.0
  assert f'--reward={path}:length=0' in found['flags']


def test_features_of_pairs():
  """Chosen less rejected, wherever they are in the row."""

  class Task:
    def num_prompts(self, split):
      return 12

    def example(self, split, index):
      return Example(prompt='', answer='ab', id=index)

    def recorded(self, example):
      pair = (
        RecordedResponse(text='ab', label=1),
        RecordedResponse(text='xyz', label=0),
      )
      return pair[:: 1 if example.id % 2 else -1]

    def reward(self, example, response):
      return {'n': len(response), 'right': response == example.answer}

  found = gaps(Task(), ['right', 'n'], 11)
  np.testing.assert_array_equal(found, [[1.0, -1.0]] * 11)
  with pytest.raises(ValueError, match='2 pairs with labels, at least 10'):
    gaps(Task(), ['n'], 2)
  broken = type('Broken', (Task,), {'reward': lambda *_: 1 / 0})
  with pytest.raises(ValueError, match='of row 0: ZeroDivisionError'):
    gaps(broken(), ['n'], 11)
