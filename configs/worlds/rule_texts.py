"""World rule_texts: a text of rules that a policy is to know by heart.

  python -m experiments.train --config=configs/worlds/rule_texts.py
    --method=policy_rollout --set=model.path=runs/policy_rollout/read
    --workdir=runs/rule_texts
configs/pipelines/policy_rollout.py makes the starts and compares methods.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import RuleTexts


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 4 samples; a text of 4 keys with its query has 12 tokens."""
  return ExperimentConfig(
    iterations=40,
    task=RuleTexts(keys=4),
    method=method,
    model=ModelSource(config=presets.small(num_heads=4, head_size=16)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=4,
      max_prompt_tokens=12,
      max_response_tokens=3,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=40, num_prompts=200, num_samples=4),
  )
