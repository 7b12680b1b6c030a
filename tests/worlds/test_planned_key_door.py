"""KeyDoor with sub-goals."""

import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import KeyDoor, PlannedKeyDoor


def test_actions_are_those_of_keydoor():
  """The plan changes nothing in the grid; its costs are components."""
  task = PlannedKeyDoor()
  example = task.example('train', 3)
  planned, plain = task.make(example), KeyDoor().make(example)
  starts = [one.reset(seed_of(example)) for one in (planned, plain)]
  assert starts[0] == starts[1]
  flags = '!K', '~K', '~D', '!G'
  costs = []
  for n, action in enumerate(task.actions(example)):
    flag = flags[min(n, 3)]
    one, other = planned.step(flag + action), plain.step(action)
    assert (one.observation, one.done, one.state) == (
      other.observation,
      other.done,
      other.state,
    )
    assert other.rewards.items() <= one.rewards.items()
    costs.append([one.rewards[k] for k in ('keep', 'changed', 'malformed')])
  assert one.done
  assert costs[:4] == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]]


def test_other_texts_do_nothing():
  task = PlannedKeyDoor()
  example = task.example('train', 0)
  walk = task.make(example)
  before = walk.reset(seed_of(example)).state
  for text in ('', 'u', 'Ku', '!u', '!!u', '~'):
    reply = walk.step(text)
    assert reply.rewards['malformed'] == 1 and reply.state == before


def test_parts_are_found_by_their_letters():
  """The parts of '!Ku' and '~Gd', with what is observed between."""
  task = PlannedKeyDoor()
  tokenizer = CharTokenizer(task.alphabet)
  ids = tokenizer.encode('!Ku01->~Gd') + [tokenizer.pad_id]
  found = task.row_inputs_device(np.asarray([ids]), None, tokenizer)
  span = found['span_BT'][0].astype(int).tolist()
  assert span[:3] == span[7:10] == [1, 2, 3] and span[10] == 0
  assert found['switch_BT'][0].tolist() == [1.0] + 10 * [0.0]


def test_texts_that_are_no_turn_have_no_parts():
  """Text that cannot be read decides nothing; a word ends with EOS."""
  task = PlannedKeyDoor(words='phrase')
  tokenizer = CharTokenizer(task.alphabet)

  def parts(text):
    ids = tokenizer.encode('01->' + text) + [tokenizer.eos_ids[0]]
    found = task.row_inputs_device(np.asarray([ids]), None, tokenizer)
    return found['span_BT'][0, 4:].tolist(), found['switch_BT'].sum()

  for text in ('u!K', 'Kuu', '!!u', '2Ku', '!2K', '0!K'):
    assert parts(text) == ([0.0] * 4, 0)
  assert parts('!Kgo up') == ([1.0, 2.0] + 6 * [3.0], 1)
  assert parts('~K0') == ([1.0, 2.0, 0.0, 0.0], 0)


def test_episodes_with_fewer_subtasks():
  """With the key in hand no key is taken; with an open door no door is opened.

  Each ends at the goal.
  """
  for subtasks, letters in ((3, 'to'), (2, 'o'), (1, '')):
    task = PlannedKeyDoor(subtasks=subtasks)
    for index in range(10):
      example = task.example('train', index)
      walk, actions = task.make(example), task.actions(example)
      walk.reset(seed_of(example))
      assert [walk.step('!K' + action) for action in actions][-1].done
      assert sorted(set(actions) & set('to')) == sorted(letters)


def test_random_return_begins_with_what_is_in_the_hands():
  """By hand: the door is open and the goal two moves away, 1/36."""
  task = PlannedKeyDoor(seed=58, num_train=1, subtasks=1)
  example = task.example('train', 0)
  assert task.random_return(example, 1, 'progress') == 0.0
  assert task.random_return(example, 2, 'outcome') == pytest.approx(1 / 36)
