"""Boxes of elements on a small screen, with the rewards of GUI-G1.

  python -m experiments.sft --config=configs/worlds/boxes.py --steps=1000
    --learning_rate=2e-3 --max_prompt_tokens=44 --max_response_tokens=5
    --out=runs/boxes_warm
  python -m experiments.train --config=configs/worlds/boxes.py --method=gui_g1
    --set=model.path=runs/boxes_warm --workdir=runs/boxes
Cost: about two minutes for each command on 2 CPU cores.
Expected: the first leaves a greedy accuracy of 0.31; of samples 0.20 hit, after
  the second 0.31 (last 10 of 100 iterations with seed 0), with grpo 0.26.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Boxes


def get_config(method: Method) -> ExperimentConfig:
  """Hit, overlap and edges; 256 rows an iteration."""
  weights = {'outcome': 1.0, 'iou': 0.25, 'edges': 0.125}
  return ExperimentConfig(
    iterations=100,
    task=Boxes(reward_weights=weights),
    method=method,
    model=ModelSource(config=presets.small(max_positions=64)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=44,
      max_response_tokens=5,
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=25, num_prompts=256),
  )
