"""World twenty_questions: one of 16 objects, by questions of a table.

  python -m experiments.train --config=configs/worlds/twenty_questions.py
    --method=turn_ppo --set=model.value_head=True
    --set=model.path=runs/lmrl/questions_bc --workdir=runs/twenty_questions
(--config=configs/worlds/twenty_questions.py@recorded: a player that says
anything in half of the turns)
configs/pipelines/lmrl.py makes the start and compares methods.
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import wordle
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.worlds import TwentyQuestions

_TURNS = 20
VARIANTS = {
  'recorded': (
    'task=RecordedWalks(task=TwentyQuestions(num_train=2000), noise=0.5, '
    'turns=20, num_recorded=1, turn_ends=False)',
    'rollout.num_prompts=64',
    'rollout.recorded_prompts=64',
    'rollout.group_size=1',
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of one letter a turn."""
  config = wordle.get_config(method)
  turns = TurnConfig(
    max_turns=_TURNS, max_turn_tokens=1, max_observation_tokens=2
  )
  return dataclasses.replace(
    config,
    task=TwentyQuestions(),
    rollout=dataclasses.replace(
      config.rollout, max_response_tokens=3 * _TURNS, turns=turns
    ),
  )
