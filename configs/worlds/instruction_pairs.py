"""World instruction_pairs: comparisons of responses and of instructions.

  python -m experiments.train --config=configs/worlds/instruction_pairs.py
    --method=reward_model --set=task.intra=0.5 --workdir=runs/instructions
Methods that sample write texts under instructions, and only the learned reward
counts. configs/pipelines/mapl.py compares shares of both kinds of pairs.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import InstructedTexts, InstructionPairs


def get_config(method: Method) -> ExperimentConfig:
  """40 pairs an iteration, or 16 prompts x 8 samples."""
  data = any(piece.from_data for _, piece in method.pieces())
  texts = InstructedTexts(reward_weights={'outcome': 0.0, 'formed': 0.0})
  return ExperimentConfig(
    iterations=200 if data else 60,
    task=InstructionPairs() if data else texts,
    method=method,
    model=ModelSource(
      config=presets.small(),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=40 if data else 16,
      group_size=2 if data else 8,
      max_prompt_tokens=1 if data else 5,
      max_response_tokens=12 if data else 7,
      recorded_prompts=40 if data else 0,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3 if data else 3e-4),
    evaluation=EvaluationConfig(
      every=0 if data else 60, num_prompts=300, num_samples=4
    ),
  )
