"""KeyDoor played by an agent that is given sub-goals."""

import pytest

from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import AdvisedKeyDoor
from rl_jax.worlds import advised_key_door as advised


def play(task, actions, index=0):
  """Replies to the actions; the grid of an example."""
  example = task.example('train', index)
  walk = task.make(example)
  return [walk.reset(seed_of(example))] + [walk.step(a) for a in actions]


@pytest.mark.parametrize(
  ('cosine', 'expected'),
  [(0.3, 0.8808), (0.1, 0.5), (0.0, 0.2689), (-0.1, 0.1192)],
)
def test_followed_by_hand(cosine, expected):
  """sigmoid(10 (cos - 0.1))."""
  assert advised.followed(cosine) == pytest.approx(expected, abs=1e-4)


def test_a_learned_agent_reaches_sub_goals_in_their_order():
  """And counts its steps; the wrong order gets nowhere."""
  task = AdvisedKeyDoor(size=4, learned=6000, stride=20)
  replies = play(task, 'KDG')
  assert [one.rewards['followed'] > 0.99 for one in replies[1:]] == [True] * 3
  assert [one.rewards['progress'] for one in replies[1:]] == [0.5, 0.5, 0.0]
  assert replies[-1].done is True and replies[-1].rewards['outcome'] == 1
  layout = task.layout(seed_of(task.example('train', 0)))
  steps = sum(one.rewards['steps'] for one in replies[1:])
  assert steps >= len(layout.solution())
  wrong = play(task, 'DG')
  assert not wrong[-1].done and wrong[1].rewards['followed'] < 0.3


def test_an_agent_that_does_not_listen():
  """E0: episodes are the same whatever the advice, but for `followed`."""
  task = AdvisedKeyDoor(listens=False, learned=300)
  found = []
  for actions in ('KDG', 'GGG', 'x?x'):
    replies = play(task, actions)
    found.append(
      [
        (one.observation, one.done, one.rewards.get('outcome'), one.state)
        for one in replies
      ]
    )
  assert found[0] == found[1] == found[2]


def test_letters_are_names():
  """E0: other letters, the same episodes; the same seed and actions, too."""
  task, other = AdvisedKeyDoor(), AdvisedKeyDoor(letters='xyz')
  names = dict(zip('KDG', 'xyz', strict=True))
  actions = 'KKDDG'
  one, again = play(task, actions), play(task, actions)
  assert one == again
  renamed = play(other, [names[a] for a in actions])
  assert [x.observation for x in one] == [x.observation for x in renamed]
  assert [x.rewards for x in one] == [x.rewards for x in renamed]


def test_other_texts_move_nothing():
  start, reply = play(AdvisedKeyDoor(), ['up'])
  assert reply.state == start.state and reply.rewards['steps'] == 0


def test_bad_letters():
  with pytest.raises(ValueError, match="letters = 'KK'"):
    AdvisedKeyDoor(letters='KK')
