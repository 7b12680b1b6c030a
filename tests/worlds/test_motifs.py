"""Texts with hidden motifs, and comparisons of them."""

import dataclasses

import pytest

from rl_jax.worlds import Motifs


def test_gold_by_hand():
  """Three of four motifs, one pair twice: 3 / 4 - 0.1."""
  task = Motifs(num_motifs=4)
  task.__dict__['motifs'] = frozenset({'ab', 'ba', 'bc', 'ff'})
  assert task.gold('ababc') == pytest.approx(0.75 - 0.1)
  assert task.gold('a') == task.gold('') == 0.0
  example = task.example('train', 0)
  assert task.reward(example, 'ab') == {'outcome': 0.25}


def test_data_are_fixed_and_held_out_labels_are_right():
  task = Motifs()
  assert len(task.motifs) == 6
  for index in range(20):
    example = task.example('validation', index)
    better, worse = task.recorded(example)
    assert (better, worse) == task.recorded(example)
    assert (better.label, worse.label) == (1, 0) and better.text != worse.text
    assert task.gold(better.text) > task.gold(worse.text)
    assert set(better.text + example.prompt) <= set(task.alphabet)


def test_train_labels_are_noisy_by_the_gap():
  """A coin without sharpness; nearly always right with much of it."""

  def wrong(task):
    pairs = [task.recorded(task.example('train', i)) for i in range(100)]
    gaps = [task.gold(b.text) - task.gold(w.text) for b, w in pairs]
    return sum(gap < 0 for gap in gaps), sum(gap != 0 for gap in gaps)

  count, different = wrong(Motifs(sharpness=0.0))
  assert 0.35 < count / different < 0.65
  assert wrong(Motifs(sharpness=1e6))[0] == 0
  noisy = wrong(dataclasses.replace(Motifs(), sharpness=10.0))[0]
  assert 0 < noisy < count


def test_two_tastes_by_hand():
  """The last of three annotators scores other motifs; a letter costs."""
  task = Motifs(num_motifs=2, annotators=3, minority=1, costs=True)
  task.__dict__['motifs'] = frozenset({'ab', 'bc'})
  task.__dict__['second_motifs'] = frozenset({'ca', 'ff'})
  assert task.costly == 'b'
  example = task.example('train', 0)
  assert task.reward(example, 'abca') == pytest.approx(
    {'outcome': 1.0, 'second': 0.5, 'cost': 1 / 12}
  )
  for index in range(30):
    example = task.example('validation', index)
    better, worse = task.recorded(example)
    assert better.annotator == worse.annotator == index % 3
    second = index % 3 == 2
    assert task.gold(better.text, second) > task.gold(worse.text, second)


def test_tastes_share_no_motif_and_one_taste_is_the_plain_task():
  """E0: annotators who agree write the comparisons of the task without any."""
  task, plain = Motifs(annotators=4), Motifs()
  assert not task.motifs & task.second_motifs
  assert len(task.second_motifs) == 6
  for index in range(10):
    one, other = (t.recorded(t.example('train', index)) for t in (task, plain))
    assert [x.text for x in one] == [x.text for x in other]
    assert other[0].annotator is None
  assert task.reward(task.example('train', 0), 'ab').keys() == {'outcome'}


def test_tastes_are_checked():
  with pytest.raises(ValueError, match='Motifs.minority = 2'):
    Motifs(annotators=1, minority=2)
  with pytest.raises(ValueError, match='Motifs.num_motifs = 20'):
    Motifs(annotators=2, minority=1, num_motifs=20)
