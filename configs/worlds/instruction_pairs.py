"""World instruction_pairs: comparisons of responses and of instructions.

  python -m experiments.train --config=configs/worlds/instruction_pairs.py
    --method=reward_model --set=task.intra=0.5 --workdir=runs/instructions
configs/pipelines/mapl.py compares shares of both kinds of pairs.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import InstructionPairs


def get_config(method: Method) -> ExperimentConfig:
  """40 pairs an iteration."""
  return ExperimentConfig(
    iterations=200,
    task=InstructionPairs(),
    method=method,
    model=ModelSource(
      config=presets.small(),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=40,
      group_size=2,
      max_prompt_tokens=1,
      max_response_tokens=12,
      recorded_prompts=40,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=0),
  )
