"""Words to be written backwards, and pairs of the right word and a wrong one.

A wrong word has one wrong letter. The share of letters in place is the gold
score of any answer.
Command: python -m experiments.train --config=configs/repair.py --method=sft
  --set=task.form=right --set=rollout.group_size=1 --workdir=runs/repair
Cost: about 20 seconds on 2 CPU cores, most of it compilation.
Expected: see configs/pipelines/pit.py.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import BackwardWords, RulePairs


def get_config(method: Method) -> ExperimentConfig:
  """64 pairs an iteration."""
  return ExperimentConfig(
    iterations=100,
    task=RulePairs(BackwardWords(), symbols='abcdefgh'),
    method=method,
    model=ModelSource(
      config=presets.small(num_heads=4, head_size=16),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=2,
      max_prompt_tokens=5,
      max_response_tokens=6,
      logged_prompts=64,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=256),
  )
