"""Kuhn poker in words: what is said in each of its twelve decisions.

SFT on targets teaches to name a random move; the pipeline lspo continues from
it.
Command: python -m experiments.train --config=configs/worlds/spoken_kuhn.py
  --method=sft --set=rollout.group_size=1 --workdir=runs/spoken
Cost: about 20 seconds on 2 CPU cores. Needs the extra 'games'.
Expected: with seed 0 every greedy text is a legal move; the policy is as
  exploitable as a random one (configs/pipelines/lspo.py).
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import SpokenMoves


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts an iteration, of data a text or a pair for each."""
  return ExperimentConfig(
    iterations=300,
    task=SpokenMoves(),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=2,
      max_prompt_tokens=6,
      max_response_tokens=10,
      recorded_prompts=64,
    ),
    optimizer=OptimizerConfig(learning_rate=2e-3),
    evaluation=EvaluationConfig(every=300, num_prompts=12),
  )
