"""FrozenLake of Gymnasium without slipping, by a decoder of 83,000 parameters.

The policy reads the number of its square and writes l, d, r or u; six actions
at least lead past the holes. A letter that is not an action costs 0.1, so that
they are learned first.
Command: python -m experiments.train --config=configs/frozen_lake.py
  --method=turn_ppo --workdir=runs/frozen_lake
Cost: a minute of a CPU core. Needs the extra 'games'.
Expected: over five seeds, in the last six iterations, 98% of drawn episodes end
  at the goal with turn_ppo (one seed 91%) and 99% with grpo.
"""

import dataclasses

from configs.worlds import lookup
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import GymnasiumText

WORDS = ('l', 'd', 'r', 'u')


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most ten turns."""
  turns, refusal = 10, f'Not an action: {", ".join(WORDS)}\n'
  config = lookup.get_config(method)
  return dataclasses.replace(
    config,
    iterations=60,
    task=GymnasiumText(
      name='FrozenLake-v1',
      options={'is_slippery': False},
      words=WORDS,
      alphabet=''.join(sorted({*'0123456789', *refusal})),
      reward_weights={'reward': 1.0, 'invalid': -0.1},
    ),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=turns * (1 + len(refusal)),
      turns=TurnConfig(
        max_turns=turns,
        max_turn_tokens=1,
        max_observation_tokens=len(refusal),
      ),
    ),
    evaluation=EvaluationConfig(every=0),
  )
