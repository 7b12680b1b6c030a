"""Qwen2.5-0.5B-Instruct on GSM8K, sized for one accelerator of 24 GB.

  python -m experiments.import_weights --source=Qwen2.5-0.5B-Instruct
    --out=models/qwen2.5-0.5b
  python -m experiments.train --config=configs/qwen2p5_0p5b_gsm8k.py
    --method=dapo --workdir=runs/qwen2p5_0p5b_gsm8k
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
  config = gsm8k.get_config(method, 'models/qwen2.5-0.5b', 'Qwen2.5-0.5B')
  return dataclasses.replace(
    config, optimizer=OptimizerConfig(learning_rate=1e-6, warmup_steps=10)
  )
