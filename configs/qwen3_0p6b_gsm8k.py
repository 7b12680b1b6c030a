"""Qwen3-0.6B on GSM8K, sized for one accelerator of 24 GB.

  python -m experiments.import_weights --source=Qwen3-0.6B
    --out=models/qwen3-0.6b
  python -m experiments.train --config=configs/qwen3_0p6b_gsm8k.py
    --method=dapo --workdir=runs/qwen3_0p6b_gsm8k
Cost and expected numbers: not measured yet; the program is checked by lowering
it on an abstract mesh.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """The shared GSM8K set-up with this model."""
  config = gsm8k.get_config(method, 'models/qwen3-0.6b', 'Qwen3-0.6B')
  return dataclasses.replace(
    config, optimizer=OptimizerConfig(learning_rate=1e-6, warmup_steps=10)
  )
