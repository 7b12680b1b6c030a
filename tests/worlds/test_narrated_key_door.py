"""KeyDoor with messages."""

import numpy as np

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import KeyDoor, NarratedKeyDoor


def test_messages_of_a_solution():
  """Grid, rewards and ends are KeyDoor's; an answer has one letter more."""
  task = NarratedKeyDoor()
  example = task.example('train', 3)
  told, plain = task.make(example), KeyDoor().make(example)
  assert told.reset(seed_of(example)) == plain.reset(seed_of(example))
  key = told._layout.key
  said = []
  for action in ['x', *task.actions(example)]:
    one, other = told.step(action), plain.step(action)
    text = one.observation
    assert text[:-2] + text[-1] == other.observation
    assert (one.rewards, one.done, one.state) == (
      other.rewards,
      other.done,
      other.state,
    )
    said.append(text[-2])
    if one.state[:2] == key and one.state[2] == 0:
      again = told.step('x').observation, plain.step('x')
      assert again[0][-2] == 'S'  # as often as one likes
  assert one.done
  assert said.count('T') == said.count('O') == 1
  assert said.index('T') < said.index('O')
  assert set(said) <= set('MBSTO')


def test_numbers_of_messages_are_read_from_tokens():
  """(letter * 3 + column) * 3 + row, and 1, at the end of an answer."""
  task = NarratedKeyDoor()
  tokenizer = CharTokenizer(task.alphabet)
  text = 'u01-S>t21kT>01-S'
  found = task.row_inputs_device(
    np.asarray([tokenizer.encode(text)]), None, tokenizer
  )['message_BT'][0]
  expected = np.zeros(len(text))
  expected[5] = (2 * 3 + 0) * 3 + 1 + 1
  expected[11] = (3 * 3 + 2) * 3 + 1 + 1
  np.testing.assert_array_equal(found, expected)
