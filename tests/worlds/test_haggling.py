"""A scripted seller, what can be earned from it, and scripted buyers."""

import numpy as np
import pytest

from rl_jax.worlds import Haggling, RecordedHaggling, haggling, haggling_values
from rl_jax.worlds.haggling import Seller


def played(task, seller, texts):
  """The replies to these turns."""
  dialogue = haggling.Bargaining(task, seller)
  assert dialogue.reset(0).observation == f'{task.highest}>'
  return [dialogue.step(text) for text in texts]


def test_a_dialogue_by_hand():
  """Feelings move this seller: 7, 4, and 2, which is the reserve."""
  task, seller = Haggling(), Seller(style=0, reserve=2, patience=5)
  replies = played(task, seller, ('f3', 'o3', 'f1', 'o2'))
  assert [r.observation for r in replies] == ['4>', '4>', '2>', '']
  assert [r.done for r in replies] == [False] * 3 + [True]
  total = {
    name: sum(r.rewards[name] for r in replies) for name in replies[0].rewards
  }
  assert total == pytest.approx(
    {'outcome': 1, 'ratio': 5 / 7, 'open': 3, 'suits': 2, 'score': 2 + 5 / 7}
  )


@pytest.mark.parametrize(
  ('texts', 'turns'),
  [
    (('o6',) * 5, 5),  # below the ask: a point each
    (('r3', 'r3', 'r3'), 3),  # the wrong appeal costs two
    (('o2', 'o2', 'o2'), 3),  # 2 is below half of 7 less 1
    (('r2', 'r2'), 2),
    (('', 'f', 'f33'), 3),  # no turns, as wrong appeals
  ],
)
def test_patience_ends(texts, turns):
  """A seller with five points of it, who leaves without a deal."""
  replies = played(Haggling(), Seller(0, 1, 5), texts)
  assert [r.done for r in replies] == [False] * (turns - 1) + [True]
  assert all(
    r.rewards['open'] == 1 and not r.rewards['outcome'] for r in replies
  )


def test_deals_are_at_the_old_ask_at_most():
  """And an appeal that suits is answered by the new ask."""
  task = Haggling()
  (reply,) = played(task, Seller(1, 1, 3), ('o7',))
  assert reply.done and reply.rewards['ratio'] == 0.0
  (reply,) = played(task, Seller(1, 1, 3), ('r4',))
  assert reply.done and reply.rewards['ratio'] == pytest.approx(3 / 7)
  _, reply = played(task, Seller(1, 1, 3), ('r3', 'o7'))
  assert reply.done and reply.rewards['ratio'] == pytest.approx(3 / 7)


def test_held_out_types_are_others():
  """Each style, reserve and patience is met in both; 18 and 6 of 24 types."""
  task = Haggling()
  train, test = task.sellers('train'), task.sellers('test')
  assert len(train) == 18 and len(test) == 6 and not set(train) & set(test)
  for sellers in (train, test):
    for place, count in enumerate((3, 4, 2)):
      assert len({seller[place] for seller in sellers}) == count
  drawn = {task.seller(task.example('test', n)) for n in range(100)}
  assert drawn == set(test) == set(task.sellers('validation'))


def test_values_of_policies():
  """Random turns as simulated; the best policy by enumeration of the types.

  It appeals to reasons, then to feelings, and continues with what suits.
  """
  task = Haggling()
  found = haggling_values.random_policy(task)
  assert found == pytest.approx(
    {'outcome': 0.48087, 'ratio': 0.09398, 'open': 1.42635}, abs=1e-5
  )
  rng, turns = np.random.default_rng(0), []
  for number in range(2000):
    dialogue = task.make(task.example('train', number % 1000))
    dialogue.reset(0)
    done = False
    while not done:
      text = rng.choice(list(haggling.ACTS)) + str(rng.integers(task.prices))
      reply = dialogue.step(text)
      turns.append([reply.rewards[name] for name in found])
      done = reply.done
  np.testing.assert_allclose(
    np.sum(turns, axis=0) / 2000, list(found.values()), rtol=0.1
  )
  best = haggling_values.best_value(task)
  assert best == pytest.approx(0.28095, abs=1e-5)
  informed = haggling_values.best_value(task, knows_type=True)
  assert informed == pytest.approx(0.56270, abs=1e-5)


def test_shortest_solutions_buy_at_the_reserve():
  """No policy earns a higher ratio."""
  task = Haggling(prices=10)
  for number in range(30):
    example = task.example('train', number)
    seller = task.seller(example)
    *_, last = played(task, seller, task.actions(example))
    expected = (task.highest - seller.reserve) / task.highest
    assert last.done and last.rewards['ratio'] == pytest.approx(expected)


def test_recorded_dialogues_are_those_of_the_seller():
  """Replayed, with the reward of the whole."""
  task = RecordedHaggling()
  for number in range(40):
    example = task.example('train', number)
    (logged,) = task.recorded(example)
    said = [said for said, _ in logged.turns]
    replies = played(task, task.seller(example), said)
    assert [r.observation for r in replies] == [
      told for _, told in logged.turns
    ]
    assert [r.done for r in replies] == [False] * (len(said) - 1) + [True]
    total = sum(r.rewards['ratio'] - 0.1 * r.rewards['open'] for r in replies)
    assert logged.reward == pytest.approx(total)


def test_good_buyers_earn_more():
  """Means of 300 dialogues, below the best policy's 0.281."""

  def mean(**fields):
    task = RecordedHaggling(**fields)
    examples = [task.example('train', n) for n in range(300)]
    return np.mean([task.recorded(one)[0].reward for one in examples])

  poor, good = mean(good=0.0, noise=0.0), mean(good=1.0, noise=0.0)
  assert poor < 0.05 and 0.2 < good < 0.33
  assert poor < mean(good=0.5, noise=0.0) < good
  assert mean(good=1.0, noise=0.5) < good
