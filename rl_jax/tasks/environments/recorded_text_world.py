"""Recorded walks through games of TextWorld."""

import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.environments.base import seed_of
from rl_jax.tasks.environments.text_world import TextWorld


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RecordedTextWorld(TextWorld):
  """TextWorld with `num_logged` recorded walks of every game.

  A player gives the first command of the game's own solution from where it is,
  or with probability `noise`, and where there is none, any that can be given. A
  walk is cut after `turns` commands. Its reward is that of the episode.
  """

  noise: float = ranged(0.5, 0.0, 1.0)
  turns: int = ranged(8, 1)
  num_logged: int = ranged(8, 1)

  @functools.cached_property
  def _walks(self) -> dict[int, tuple[Logged, ...]]:
    """Of games by their seeds: a walk takes as long as an episode."""
    return {}

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The walks."""
    seed = seed_of(example)
    if seed not in self._walks:
      self._walks[seed] = tuple(
        self._walk(example, draws.Draws('walk', seed, number))
        for number in range(self.num_logged)
      )
    return self._walks[seed]

  def target(self, example: Example) -> str:
    """What the first recorded player says first."""
    return self.logged(example)[0].turns[0][0]

  def _walk(self, example, stream):
    game, turns = self.make(example), []
    said = game.reset(seed_of(example))
    total = dict.fromkeys(self.reward_weights, 0.0)
    while len(turns) < self.turns and not said.done:
      commands = game.commands
      if game.solution and stream.uniform() >= self.noise:
        commands = game.solution[:1]
      command = stream.choice(commands)
      said = game.step(command)
      turns.append((command, said.observation))
      total = {name: x + said.rewards[name] for name, x in total.items()}
    game.close()
    turns[-1] = turns[-1][0], ''  # nothing is read behind the last
    return Logged(
      turns=tuple(turns),
      turn_ends=True,
      reward=base.combine(total, self.reward_weights),
      truncated=not said.done,
    )
