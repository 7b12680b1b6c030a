"""Taxi of Gymnasium, by a decoder of 115,000 parameters.

The policy reads the number of the state, of 500, and writes s, n, e or w to
move, p to pick the passenger up, d to drop it. It begins with a clone of
recorded walks (configs/recorded_taxi.py).
Command: python -m experiments.train --config=configs/taxi.py
  --method=turn_ppo --set=model.path=runs/taxi_start --workdir=runs/taxi
Cost: about two minutes of a CPU core. Needs the extra 'games'.
Expected: over five seeds, in the last ten iterations, a return of 6.6 of drawn
  episodes (turn_ppo) and of 6.7 (grpo), and 98% bring the passenger home. The
  best return is 7.93, 24 random actions have -94, the clone has -45 (greedily
  7.2, by which it already brings all home). experiments/papers/episodes
  compares.
"""

import dataclasses

from configs.worlds import lookup
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import GymnasiumText

WORDS = ('s', 'n', 'e', 'w', 'p', 'd')


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 24 turns."""
  turns, refusal = 24, f'Not an action: {", ".join(WORDS)}\n'
  config = lookup.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=GymnasiumText(
      name='Taxi-v4',
      words=WORDS,
      alphabet=(*(f'{state}\n' for state in range(500)), *WORDS, refusal),
      solved=-100.0,
      reward_weights={'reward': 0.05, 'invalid': -0.5},
    ),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=1,
      max_response_tokens=2 * turns - 1,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=1, max_observation_tokens=1
      ),
    ),
    evaluation=EvaluationConfig(every=0),
  )
