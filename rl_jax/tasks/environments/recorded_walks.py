"""Recorded walks through an environment that knows how it is solved."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.environments.base import is_environment, seed_of
from rl_jax.tasks.wrapped import Wrapped


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RecordedWalks(Wrapped):
  """A task of episodes with `num_recorded` recorded walks of each.

    RecordedWalks(task=TextWorld(rooms=2), noise=0.3)

  A player gives the first action of the episode's own solution from where it
  is, or with probability `noise`, and where there is none, any that can be
  given. A walk is cut after `turns` actions. Its reward is that of the episode.
  turn_ends: an end token closes an action; else it has as many tokens as a turn
  of the policy may have.
  Episodes of the task have two properties: `commands`, the actions that can be
  given, and `solution`, those that solve it from here or the first of them; ()
  if there are none. KeyDoor, PlannedKeyDoor, SearchedFacts, TextWorld, BabyAI
  and environments of Gymnasium with a table of transitions have them.
  """

  task: Any
  noise: float = ranged(0.5, 0.0, 1.0)
  turns: int = ranged(8, 1)
  num_recorded: int = ranged(8, 1)
  turn_ends: bool = True

  def __post_init__(self):
    super().__post_init__()
    if not is_environment(self.task):
      raise ValueError(
        f'RecordedWalks.task = {type(self.task).__name__} is not an '
        'environment (it has no method make)'
      )

  @functools.cached_property
  def _walks(self) -> dict[int, tuple[RecordedResponse, ...]]:
    """Walks by the seeds of their episodes, kept, as walks take time."""
    return {}

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The walks."""
    seed = seed_of(example)
    if seed not in self._walks:
      self._walks[seed] = tuple(
        self._walk(example, draws.Draws('walk', seed, number))
        for number in range(self.num_recorded)
      )
    return self._walks[seed]

  def target(self, example: Example) -> str:
    """Returns what the first recorded player says first."""
    return self.recorded(example)[0].turns[0][0]

  def _walk(self, example, stream):
    episode, turns = self.start(example), []
    said = episode.reset(seed_of(example))
    if episode.solution is None or episode.commands is None:
      raise ValueError(
        f'RecordedWalks.task = {type(self.task).__name__}: its episodes have '
        'no property `solution`, or no `commands`'
      )
    total = dict.fromkeys(self.reward_weights, 0.0)
    while len(turns) < self.turns and not (said.done or said.truncated):
      actions, solution = episode.commands, episode.solution
      assert actions is not None
      if solution and stream.uniform() >= self.noise:
        actions = solution[:1]
      action = stream.choice(actions)
      said = episode.step(action)
      turns.append((action, said.observation))
      total = {name: x + said.components[name] for name, x in total.items()}
    episode.close()
    turns[-1] = turns[-1][0], ''  # nothing is read after the last
    return RecordedResponse(
      turns=tuple(turns),
      turn_ends=self.turn_ends,
      reward=base.combine(total, self.reward_weights),
      truncated=not said.done,
    )
