"""Critiques of answers of families."""

import dataclasses

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import CriticisedFamilies, Families

EXAMPLE = Example(prompt='r 3 1 4=', answer='4 1 3', id=0)


@pytest.mark.parametrize(
  ('response', 'said'),
  [
    ('4 1 3', '4 1 3|0'),
    ('4 2 3', '4 2 3|2'),
    ('4 2 2', '4 2 2|2'),
    ('4 1', '4 1|3'),
    ('', '|1'),
    ('4 1 3 3', '4 1 3|0'),
    ('c4=1|3', '4 1 3|0'),
  ],
)
def test_the_first_wrong_place_is_named(response, said):
  found = CriticisedFamilies().criticised(EXAMPLE, response)
  assert found == dataclasses.replace(EXAMPLE, prompt=f'r 3 1 4={said}=')


def test_the_answer_may_be_shown():
  task = CriticisedFamilies(critique='answer')
  assert task.criticised(EXAMPLE, '4 2 3').prompt == 'r 3 1 4=4 2 3|4 1 3='


def test_prompts_to_learn_from_have_one_wrong_digit():
  """Others are those of Families, and so are the answers."""
  plain, task = Families(), CriticisedFamilies(refined=0.5)
  count = 0
  for index in range(40):
    own, other = task.example('train', index), plain.example('train', index)
    assert own.answer == other.answer
    if own.prompt != other.prompt:
      count += 1
      said = own.prompt.removeprefix(other.prompt)[:-1]
      given, place = said.split('|')
      wrong = [a != b for a, b in zip(given, own.answer, strict=True)]
      assert sum(wrong) == 1 and wrong.index(True) == 2 * (int(place) - 1)
    assert set(own.prompt) <= set(task.alphabet)
  assert 10 < count < 30
  assert task.example('validation', 0) == plain.example('validation', 0)


@pytest.mark.parametrize(
  ('response', 'scores'),
  [
    ('4 1 3', {0: 1, 2: 1, 4: 1}),
    ('4 2 3', {0: 1, 2: -1, 4: 1}),
    ('4 1 3 3', {0: 1, 2: 1, 4: 1, 6: -1}),
    ('c=', {}),
  ],
)
def test_digits_are_spans(response, scores):
  found = CriticisedFamilies().spans(EXAMPLE, response)
  assert found == tuple((a, a + 1, float(x)) for a, x in scores.items())
