"""Prompts that are written out, and answers to them."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import RewardIdentifiers, TextSpans
from rl_jax.tasks.base import Example
from rl_jax.worlds import ExpandedFamilies, Families

TASK = ExpandedFamilies()


def asked(family, digits):
  """The example of a prompt."""
  return Example(
    prompt=f'{family} {" ".join(digits)}=',
    answer=answer(family, digits),
    id=0,
    meta={'family': family},
  )


def answer(family, digits):
  by_hand = {
    'c': '314',
    'r': '413',
    's': '134',
    'd': '431',
    'i': '425',
    'm': '685',
  }
  assert digits == '314'
  return ' '.join(by_hand[family])


@pytest.mark.parametrize(
  ('family', 'target'),
  [
    ('c', '3 1 4|3 1 4'),
    ('r', '4 1 3|4 1 3'),
    ('s', '1 3 4|1 3 4'),
    ('d', '4 3 1|4 3 1'),
    ('i', '3 1 4|4 2 5'),
    ('m', '3 1 4|6 8 5'),
  ],
)
def test_targets_by_hand(family, target):
  example = asked(family, '314')
  assert TASK.target(example) == target
  expected = {'outcome': 1.0, 'places': 1.0, 'expanded': 1.0}
  assert TASK.reward(example, target) == expected


@pytest.mark.parametrize(
  ('response', 'expected'),
  [
    ('1 3 4|1 3 4', (1.0, 1.0, 1.0)),
    ('9|1 3 4', (1.0, 1.0, 0.0)),  # the answer is judged by the prompt
    ('1 3 4|1 4 3', (0.0, 1 / 3, 1.0)),
    ('1 3 4', (0.0, 0.0, 1.0)),  # no answer
    ('|1 3 4', (1.0, 1.0, 0.0)),
  ],
)
def test_only_the_answer_is_paid(response, expected):
  found = TASK.reward(asked('s', '314'), response)
  names = ('outcome', 'places', 'expanded')
  assert tuple(found[name] for name in names) == pytest.approx(expected)


def test_answers_are_those_of_families():
  """E0: the reward of what follows the mark, whatever is before it."""
  for index in range(40):
    example = TASK.example('train', index)
    assert example == Families().example('train', index)
    for text in (example.answer, '1 2 3 4', ''):
      plain = Families().reward(example, text)
      for before in ('', '1 2', TASK.target(example).split('|')[0]):
        found = TASK.reward(example, f'{before}|{text}')
        del found['expanded']
        assert found == plain


def test_a_slip_is_in_the_expansion_and_the_answer_follows_it():
  """Two neighbours are exchanged; equal ones leave it as it was."""
  task, wrong = ExpandedFamilies(slips=1.0), 0
  for index in range(60):
    example = task.example('train', index)
    right, found = TASK.target(example), task.target(example)
    assert set(example.prompt + found) <= set(task.alphabet)
    if found == right:
      continue
    wrong += 1
    parts = [text.split('|')[0].split(' ') for text in (right, found)]
    differ = [i for i in range(4) if parts[0][i] != parts[1][i]]
    assert len(differ) == 2 and differ[1] == differ[0] + 1
    assert task.reward(example, found)['outcome'] == 0.0
  assert wrong > 40


def test_the_mark_ends_the_span_that_rewrites():
  """With the name of a reward before the prompt, as the pipeline has it."""
  task = TextSpans(
    RewardIdentifiers(TASK, marks={'outcome': 'O', 'places': 'P'}),
    think=('=', '|'),
    segments=(),
    opened=True,
  )
  tokenizer = CharTokenizer(task.alphabet)
  ids = np.array([tokenizer.encode('1 3|1 3'), tokenizer.encode('1 3 1 3')])
  found = task.row_inputs_device(jnp.asarray(ids), jnp.array([7, 7]), tokenizer)
  np.testing.assert_array_equal(
    found['think_mask_BT'], [[1, 1, 1, 1, 0, 0, 0], [1] * 7]
  )


def test_noise_cannot_be_expanded():
  with pytest.raises(ValueError, match="families = 'cx': x has no expansion"):
    ExpandedFamilies(families='cx')
  with pytest.raises(ValueError, match='ExpandedFamilies.slips = 2'):
    ExpandedFamilies(slips=2.0)
