"""KeyDoor in which every turn says its sub-goal before its action."""

import dataclasses
import itertools
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import DeviceReply, Reply
from rl_jax.worlds.key_door import ACTIONS, WORDS, KeyDoor, Walk
from rl_jax.worlds.key_door_words import observed

SWITCH, KEEP = '!~'
SUBGOALS = 'KDG'  # the key, the door, the goal
_HEADS = [flag + subgoal for flag in SWITCH + KEEP for subgoal in SUBGOALS]


@dataclasses.dataclass(frozen=True)
@checked
class PlannedKeyDoor(KeyDoor):
  """KeyDoor whose turns are a flag, a sub-goal and an action, as '!Ku'.

  The flag is '!' for a new sub-goal and '~' to keep it; sub-goals are 'K' for
  the key, 'D' for the door and 'G' for the goal. They change nothing in the
  grid. subtasks: 2 begins with the key in hand, 1 with an open door.
  More components:
  `keep` 1 for a turn that keeps, `changed` 1 if it has another sub-goal all
  the same, `malformed` 1 for any other text, which does nothing.
  Source: the costs of HiPER, c_keep -0.3, c_cons -0.3 and c_inv 0.1, are for
  rewards of 10; the default weights are a tenth of them.
  """

  reward_weights: dict[str, float] = base.weights_field(
    outcome=0.5, progress=0.5, keep=-0.03, changed=-0.03, malformed=-0.01
  )
  subtasks: int = ranged(3, 1, 3)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return super().alphabet + SWITCH + KEEP + SUBGOALS

  @property
  def begins(self) -> int:
    """Returns what is in the hands at the start: its place in HOLDS."""
    return len(SUBGOALS) - self.subtasks

  def make(self, example: Example) -> 'PlannedWalk':
    """An episode in the grid of the example."""
    return PlannedWalk(self)

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """See EnvironmentTask; the state has the sub-goal, -1 at first."""
    import jax.numpy as jnp

    walks, place_B = super().begin_device(answer_BA)
    place_B = place_B + self.begins
    walks = walks._replace(place_B=place_B)
    return (walks, jnp.full_like(place_B, -1)), place_B

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `PlannedWalk.step`."""
    import jax.numpy as jnp

    from rl_jax.worlds import device_text, key_door_device

    words = WORDS[self.words]
    table_SV, texts = device_text.word_table(
      [head + word for head in _HEADS for word in words], tokenizer, _HEADS
    )
    known = {word: number for number, word in enumerate(words)}
    parts = [
      (
        known.get(text[2:] if text[:2] in _HEADS else '', len(ACTIONS)),
        SUBGOALS.index(text[1]) if text[:2] in _HEADS else -1,
        text[:2] in _HEADS and text[0] == KEEP,
      )
      for text in texts
    ]
    spelled_B = device_text.spelled(table_SV, action_BA, length_B)
    number_B, named_B, keeps_B = jnp.asarray(parts, jnp.int32)[spelled_B].T
    walks, subgoal_B = state
    walks, reply = key_door_device.step(self.size, walks, number_B, tokenizer)
    changed_B = (keeps_B > 0) & (subgoal_B >= 0) & (subgoal_B != named_B)
    rewards = {
      'keep': keeps_B.astype(jnp.float32),
      'changed': changed_B.astype(jnp.float32),
      'malformed': (named_B < 0).astype(jnp.float32),
    }
    subgoal_B = jnp.where(named_B >= 0, named_B, subgoal_B)
    reply = reply._replace(rewards={**reply.rewards, **rewards})
    return (walks, subgoal_B), reply

  def row_inputs_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> dict[str, Any]:
    """span_BT and switch_BT of `HierarchicalGAE`.

    Only turns that begin with flag and sub-goal have parts; in any other text
    the letters are not decisions, as the environment reads none from them.
    """
    import jax
    import jax.numpy as jnp

    del length_B  # padding has no letter

    def ids(letters):
      return [tokenizer.encode(letter)[0] for letter in letters]

    def is_id(numbers):
      return sum(response_BT == n for n in numbers) > 0

    def is_one(letters):
      return is_id(ids(letters))

    def before(x_BT, first):
      return jnp.pad(x_BT[:, :-1], ((0, 0), (1, 0)), constant_values=first)

    def after(x_BT):
      return jnp.pad(x_BT[:, 1:], ((0, 0), (0, 1)))

    # What a policy reads ends with '>', so that a turn begins after it.
    flag = is_one(SWITCH + KEEP) & before(is_one('>'), True)
    flag &= after(is_one(SUBGOALS))
    subgoal = before(flag, False)
    eos = is_id(tokenizer.eos_ids)
    other = is_one(set('0123456789:>') & set(self.alphabet))
    other |= eos | is_id([tokenizer.pad_id])

    def latest(x_BT):
      return jax.lax.cummax(
        jnp.where(x_BT, jnp.arange(x_BT.shape[1]), -1), axis=1
      )

    action = ~(other | subgoal | flag) & (latest(subgoal) > latest(other))
    action |= eos & before(action, False)
    return {
      'span_BT': 1.0 * flag + 2.0 * subgoal + 3.0 * action,
      'switch_BT': 1.0 * (is_one(SWITCH) & flag),
    }


class PlannedWalk(Walk):
  """One episode."""

  _subgoal = None

  def reset(self, seed: int) -> Reply:
    """Starts with what the task gives."""
    reply = super().reset(seed)
    self._state = (*self._state[:2], self._task.begins)
    text = self._layout.described() + observed(self._state)
    return dataclasses.replace(reply, observation=text, state=self._state)

  def step(self, action: str) -> Reply:
    """The action after flag and sub-goal; of another text nothing."""
    flag, subgoal = action[:1], action[1:2]
    formed = flag in (SWITCH, KEEP) and subgoal != '' and subgoal in SUBGOALS
    reply = super().step(action[2:] if formed else '')
    keeps = formed and flag == KEEP
    rewards = {
      'keep': float(keeps),
      'changed': float(keeps and self._subgoal not in (None, subgoal)),
      'malformed': float(not formed),
    }
    if formed:
      self._subgoal = subgoal
    return dataclasses.replace(reply, rewards={**reply.components, **rewards})

  @property
  def commands(self) -> tuple[str, ...]:
    """Every flag with every sub-goal and action."""
    return tuple(map(''.join, itertools.product(_HEADS, super().commands)))

  @property
  def solution(self) -> tuple[str, ...]:
    """The first turn of a shortest way, whose sub-goal is what is next."""
    subgoal = SUBGOALS[self._state[2]]
    flag = KEEP if subgoal == self._subgoal else SWITCH
    return (flag + subgoal + super().solution[0],)
