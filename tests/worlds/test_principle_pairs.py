"""Pairs of digits, of which one meets a rubric more often."""

import pytest

from rl_jax.models.judge_source import filled
from rl_jax.worlds import PrinciplePairs, principle_pairs


@pytest.mark.parametrize(
  'rubric, digits, expected',
  [
    ('es', '4021', 3 + 4),
    ('ob', '4021', 1 + 0),
    ('eu', '1234', 2 + 3),
    ('sd', '9944', 2 + 1),
  ],
)
def test_principles_by_hand(rubric, digits, expected):
  assert principle_pairs.met(rubric, digits) == expected


def test_opposite_principles_share_no_rubric():
  assert len(principle_pairs.RUBRICS) == 12
  for rubric in principle_pairs.RUBRICS:
    assert {*rubric} not in ({'e', 'o'}, {'s', 'b'}, {'u', 'd'})


def test_the_better_one_is_where_the_label_says():
  """The prompt is the question of a judge with the topic's rubric."""
  task = PrinciplePairs()
  labels = []
  for index in range(60):
    example = task.example('train', index)
    topic, rubric = example.prompt[:2], example.prompt[2:4]
    assert rubric == task.rubric_of(topic)
    pair = example.prompt[5:-1].split('?')
    slots = {'prompt': topic, 'rubric': rubric}
    slots |= dict(zip(('first', 'second'), pair, strict=True))
    assert filled(principle_pairs.TEMPLATE, slots) == example.prompt
    good = int(example.answer) - 1
    met = [principle_pairs.met(rubric, x) for x in pair]
    assert met[good] > met[1 - good]
    assert principle_pairs.better(rubric, *pair) == example.answer
    assert {*example.prompt, *example.answer} <= {*task.alphabet}
    labels.append(good)
  assert 15 < sum(labels) < 45


def test_swapped_responses_have_the_other_label():
  assert principle_pairs.better('es', '4021', '7193') == '1'
  assert principle_pairs.better('es', '7193', '4021') == '2'
  assert principle_pairs.better('es', '4021', '4021') == ''
