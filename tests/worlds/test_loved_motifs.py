"""Texts, and whether users react to them."""

import pytest

from rl_jax.worlds import LovedMotifs, Motifs

TASK = LovedMotifs(num_train=2000)


def test_chances_by_hand():
  """The base, a share of the gold score, and the ending."""
  assert TASK.chance('a') == pytest.approx(0.05)
  assert TASK.chance('f') == pytest.approx(0.45)
  motif = sorted(TASK.motifs)[0]
  expected = 0.05 + 0.2 / 6 + 0.4 * motif.endswith('f')
  assert TASK.chance(motif) == pytest.approx(expected)
  assert LovedMotifs(base=0.8, by_ending=0.9).chance('f') == 1.0


def test_labels_occur_as_often_as_they_should():
  rows = [TASK.recorded(TASK.example('train', n)) for n in range(2000)]
  assert all(len(row) == 1 for row in rows)
  share = sum(row[0].label for row in rows) / 2000
  expected = sum(TASK.chance(row[0].text) for row in rows) / 2000
  assert share == pytest.approx(expected, abs=0.03)


def test_the_gold_score_is_that_of_motifs():
  """An ending is worth nothing."""
  example = TASK.example('train', 0)
  plain = Motifs().reward(example, 'abcf')
  assert TASK.reward(example, 'abcf') == {**plain, 'loved': 1.0}
  assert TASK.reward(example, 'abca')['loved'] == 0.0
