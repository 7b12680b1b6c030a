"""Clues to a letter, and a reward u for saying that they do not suffice.

The best policy abstains iff P(right) < u. GroupScale is left out: it makes
each group's rewards, 1 and u or 0 and u, equally far apart, so with it
P(right) < 1/2 decides for every u. runs/clues_frozen is made by the first
command of experiments/papers/abstention/abstention.py; from random weights GRPO
learned to abstain always.
Command: python -m experiments.train --config=configs/worlds/clues.py
  --method=grpo --set=method.credit.GroupScale=null
  --set=model.path=runs/clues_frozen --workdir=runs/clues
Cost: about 65 CPU seconds.
Expected: with seed 0 and u = 0.55 the mean reward on 3,000 test rows is 0.638
  and the likeliest response follows the rule on 94% of them, with GroupScale
  0.628 and 89%; the best policy has 0.642, an answer always 0.57. With u = 0.75
  0.755 and 84%, with GroupScale 0.687 and 55%; the best policy has 0.771.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Clues


def get_config(method: Method) -> ExperimentConfig:
  """1024 rows an iteration; u = 0.55."""
  return ExperimentConfig(
    iterations=400,
    task=Clues(reward_weights={'outcome': 1.0, 'abstained': 0.55}),
    method=method,
    model=ModelSource(config=presets.small()),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=16,
      max_prompt_tokens=9,
      max_response_tokens=2,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=100, num_prompts=500),
  )
