"""BabyAI's GoToLocal in text, by a decoder of 92,000 parameters.

In a room of six by six the policy reads a mission, 'go to the red ball', and
the things in view, and writes one of seven actions. Success earns 1, and a text
that is not an action -0.1.
Command: python -m experiments.train --config=configs/babyai.py --method=grpo
  --set=model.path=runs/babyai_renamed --workdir=runs/babyai
The clone of renamed random walks that it begins with here:
configs/renamed_babyai.py.
Cost: two minutes of a CPU core. Needs the extra 'games'.
Expected: over five seeds 90% of held-out missions are fulfilled by drawn
  episodes and 92% by greedy ones after 40 iterations, without the clone
  (no model.path) 39% and 42%. experiments/papers/episodes compares.
"""

import dataclasses

from configs.worlds import lookup
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import MiniGrid


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 12 turns."""
  turns, observed = 12, 12
  config = lookup.get_config(method)
  return dataclasses.replace(
    config,
    iterations=40,
    task=MiniGrid(
      name='BabyAI-GoToLocalS6N2-v0',
      num_train=4000,
      reward_weights={'outcome': 1.0, 'invalid': -0.1},
    ),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=5 + observed,
      max_response_tokens=turns + (turns - 1) * observed,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=1, max_observation_tokens=observed
      ),
    ),
    evaluation=EvaluationConfig(every=40, num_prompts=100, num_samples=4),
  )
