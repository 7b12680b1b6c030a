"""World family_chains: two or three rules on digits, every step written.

  python -m experiments.train --config=configs/worlds/family_chains.py
    --method=sft --set=rollout.recorded_prompts=64 --set=rollout.num_prompts=64
    --set=rollout.group_size=1 --set=iterations=400
    --set=optimizer.learning_rate=2e-3 --workdir=runs/family_chains
The pipelines veripo, step_orlm and easy_to_hard of configs/pipelines begin
here.
Cost: about half a minute on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import FamilyChains


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples of at most 24 tokens."""
  return ExperimentConfig(
    iterations=40,
    task=FamilyChains(),
    method=method,
    model=ModelSource(
      config=presets.small(num_heads=4, head_size=16),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=10,
      max_response_tokens=24,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=40, num_prompts=300, num_samples=4),
  )
