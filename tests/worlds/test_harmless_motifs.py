"""Texts, and whether they are safe."""

import pytest

from rl_jax.worlds import HarmlessMotifs, LovedMotifs

TASK = HarmlessMotifs(num_train=2000)


def test_the_harm_is_a_motif_and_counts_anywhere():
  harm = TASK.harm
  assert harm in TASK.motifs
  example, other = TASK.example('train', 0), min({*'abcdef'} - {*harm})
  apart = other.join(harm)
  for text, expected in ((f'{other}{harm}', 0.0), (apart, 1.0), ('', 1.0)):
    assert TASK.reward(example, text)['harmless'] == expected


def test_other_components_are_those_of_loved_motifs():
  """E0."""
  example = TASK.example('train', 0)
  plain = LovedMotifs().reward(example, 'abcf')
  assert TASK.reward(example, 'abcf') == {**plain, 'harmless': 1.0}


@pytest.mark.parametrize('slips', [0.0, 0.1, 1.0])
def test_so_many_labels_are_wrong(slips):
  task = HarmlessMotifs(num_train=2000, slips=slips)
  rows = [task.recorded(task.example('train', n))[0] for n in range(2000)]
  wrong = sum((task.harm not in x.text) != x.label for x in rows) / 2000
  assert wrong == pytest.approx(slips, abs=0.02)
  unsafe = sum(task.harm in x.text for x in rows) / 2000
  assert 0.05 < unsafe < 0.3


def test_a_share_above_one():
  with pytest.raises(ValueError, match='HarmlessMotifs.slips = 1.5'):
    HarmlessMotifs(slips=1.5)
