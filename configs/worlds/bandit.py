"""A contextual bandit with a one-layer model: the smallest complete run.

Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=grpo --workdir=runs/bandit
Cost: about 10 seconds on 2 CPU cores, most of it compilation.
Expected: reward/mean 0.75 after 60 iterations with seed 0 (random: 0.003); in
two contexts the policy converges to a wrong action before the right one is
sampled. With --set=rollout.group_size=16 --set=optimizer.learning_rate=5e-3
--set=iterations=200 all are learned: 1.0.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Bandit


def get_config(method: Method) -> ExperimentConfig:
  """Eight contexts, eight actions, 64 rows an iteration."""
  return ExperimentConfig(
    iterations=60,
    task=Bandit(),
    method=method,
    model=ModelSource(
      config=presets.small(num_layers=1, width=32, head_size=16, mlp_size=64)
    ),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=8,
      max_prompt_tokens=1,
      max_response_tokens=2,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-2),
    evaluation=EvaluationConfig(every=20, num_prompts=8),
  )
