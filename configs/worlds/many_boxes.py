"""World many_boxes: one or two boxes of a letter on a small screen.

  python -m experiments.train --config=configs/worlds/many_boxes.py
    --method=vision_r1@several --set=model.path=runs/vision_r1/warm
    --workdir=runs/many_boxes
configs/pipelines/vision_r1.py makes the start. The reward of the task is the
format, to which the method adds precision and recall.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import ManyBoxes


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples of at most 15 tokens."""
  return ExperimentConfig(
    iterations=60,
    task=ManyBoxes(reward_weights={'format': 1.0}),
    method=method,
    model=ModelSource(config=presets.small(max_positions=64)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=32,
      max_response_tokens=15,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=60, num_prompts=300, num_samples=4),
  )
