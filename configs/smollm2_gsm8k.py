"""SmolLM2-135M-Instruct on GSM8K, sized for one accelerator of 16 GB.

  python -m experiments.import_weights --source=SmolLM2-135M-Instruct
    --out=models/smollm2
  python -m experiments.train --config=configs/smollm2_gsm8k.py
    --method=dapo --workdir=runs/smollm2_gsm8k
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
  config = gsm8k.get_config(method, 'models/smollm2', 'SmolLM2-135M')
  return dataclasses.replace(
    config, optimizer=OptimizerConfig(learning_rate=2e-5, warmup_steps=10)
  )
