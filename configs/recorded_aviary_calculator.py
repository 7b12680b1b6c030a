"""Recorded episodes of sums in words with a calculator, then others.

Command: python -m experiments.train
  --config=configs/recorded_aviary_calculator.py --method=sft
  --workdir=runs/aviary_start
Cost: about a minute of a CPU core. Needs the extra 'aviary'.
Expected: not measured.
"""

import dataclasses
import re

from configs import aviary_calculator
from configs.environments import word_sums
from rl_jax.checks import checked, ranged
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.tasks import Aviary, draws
from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.environments.base import seed_of

_SIGN, _RESULT = re.compile(r'[+*-]'), re.compile(r'-?\d+')


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RecordedSums(Aviary):
  """Aviary with one recorded episode of every sum.

  A player does a share `by_hand` of the sums without the calculator, and
  half of those rightly; a share `careless` of its calls has a random sign.
  """

  by_hand: float = ranged(0.3, 0.0, 1.0)
  careless: float = ranged(0.5, 0.0, 1.0)

  def logged(self, example: Example) -> tuple[Logged]:
    """The episode; of a wrong answer, too, the likelihood is learned."""
    place = example.meta['place']
    problem = word_sums.WordSums(**self.options).problem(place)
    stream = draws.Draws('player of word sums', place)
    episode, turns = self.make(example), []
    episode.reset(seed_of(example))
    if stream.uniform() < self.by_hand:
      off = 1 + stream.below(9) if stream.uniform() < 0.5 else 0
      answer = str(int(problem.answer) + off)
    else:
      expression = problem.expression
      if stream.uniform() < self.careless:
        expression = _SIGN.sub(stream.choice('+-*'), expression)
      call = f'{word_sums.CALL}{expression}{word_sums.CLOSE}'
      told = episode.step(call).observation
      turns.append((call, told))
      answer = _RESULT.search(told)[0]
    episode.close()
    turns.append((f'{word_sums.SUBMIT}{answer}{word_sums.CLOSE}', ''))
    return (Logged(turns=tuple(turns), turn_ends=True),)

  def target(self, example: Example) -> str:
    """What the player says first."""
    return self.logged(example)[0].turns[0][0]


def get_config(method: Method) -> ExperimentConfig:
  """32 episodes a step."""
  config = aviary_calculator.get_config(method)
  fields = {
    field.name: getattr(config.task, field.name)
    for field in dataclasses.fields(config.task)
  }
  return dataclasses.replace(
    config,
    iterations=400,
    task=RecordedSums(**fields),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=32, group_size=1, logged_prompts=32
    ),
    update=UpdateConfig(minibatch_prompts=32),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=5e-3),
    evaluation=dataclasses.replace(config.evaluation, every=200),
  )
