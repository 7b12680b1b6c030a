"""Strength of comparisons by several reward models, by hand."""

import json

import numpy as np
import pytest

from experiments.papers.preferences import preference_strength
from rl_jax.tasks.sources import BadRowError

TEXTS = [
  {'prompt': 'p', 'chosen': f'c{n}', 'rejected': f'r{n}'} for n in range(3)
]


def scores(*gaps):
  """Gaps [M][N] above a rejected score of 1."""
  gap_MN = np.array(gaps, float)
  return np.stack([1.0 + gap_MN, np.ones_like(gap_MN)])


def test_strength_by_hand():
  """Three models with gaps .8, -.2, .8: mean .466667, sd .471405."""
  mean, std = preference_strength.strength(*scores([0.8], [-0.2], [0.8]))
  np.testing.assert_allclose([mean[0], std[0]], [0.466667, 0.471405], atol=1e-6)


def test_the_weakest_are_turned():
  """A third of three pairs: the one that models call wrong."""
  rows = preference_strength.cleaned(
    TEXTS, scores([1, -2, 0.5], [1, -1, 0.5]), 1 / 3, 0.0
  )
  assert [(r['chosen'], r['rejected']) for r in rows] == [
    ('c0', 'r0'),
    ('r1', 'c1'),
    ('c2', 'r2'),
  ]
  assert rows[1]['strength_mean'] == 1.5 and rows[1]['strength_std'] == 0.5
  assert (rows[1]['score_chosen'], rows[1]['score_rejected']) == (1.0, -0.5)
  assert rows[0]['score_chosen'] - rows[0]['score_rejected'] == 1.0


def test_nothing_turned_is_the_data():
  """Reduction: shares of 0 leave all pairs; a dropped share leaves it out."""
  data = scores([1, -2, 0.5])
  rows = preference_strength.cleaned(TEXTS, data, 0.0, 0.0)
  assert [r['chosen'] for r in rows] == ['c0', 'c1', 'c2']
  rows = preference_strength.cleaned(TEXTS, data, 0.0, 2 / 3)
  assert [r['chosen'] for r in rows] == ['c0']


def test_a_number_added_to_a_model_changes_nothing():
  """Invariance of comparisons."""
  data = scores([1, -2, 0.5], [0, 1, 2])
  moved = data + np.array([5.0, -3.0])[None, :, None]
  for one, other in zip(
    preference_strength.strength(*data),
    preference_strength.strength(*moved),
    strict=True,
  ):
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_bad_files_are_named(tmp_path):
  paths = [str(tmp_path / f'{n}.jsonl') for n in range(2)]
  row = TEXTS[0] | {'score_chosen': 1.0, 'score_rejected': 0.0}

  def write(path, **changes):
    with open(path, 'w') as file:
      file.write(json.dumps(row | changes) + '\n')

  write(paths[0])
  write(paths[1])
  texts, found = preference_strength.read(paths)
  assert texts == TEXTS[:1] and found.shape == (2, 2, 1)
  write(paths[1], chosen='other')
  with pytest.raises(ValueError, match='1.jsonl does not have the pairs'):
    preference_strength.read(paths)
  write(paths[1], score_chosen=10**400)
  with pytest.raises(BadRowError, match="1.jsonl:1.*'score_chosen' is 1000"):
    preference_strength.read(paths)
  write(paths[1], score_chosen=None)
  with pytest.raises(BadRowError, match="1.jsonl:1.*'score_chosen' is None"):
    preference_strength.read(paths)
