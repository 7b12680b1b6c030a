"""Qwen2.5-1.5B-Instruct on GSM8K, sized for eight accelerators of 16 GB.

  python -m experiments.plan --config=configs/qwen2p5_1p5b_gsm8k.py
    --target=tpu:v5e:2x4
  python -m experiments.import_weights --source=Qwen2.5-1.5B-Instruct
    --out=models/qwen2.5-1.5b
  python -m experiments.train --config=configs/qwen2p5_1p5b_gsm8k.py
    --method=dapo --workdir=runs/qwen2p5_1p5b_gsm8k
On one accelerator of 80 GB add --set=mesh.fsdp=1
--set=update.microbatch_prompts=1.
Cost and expected numbers: not measured yet; the first command compiles the
programs for eight TPU v5e and prints memory, traffic and a roofline.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.runtime.mesh import MeshConfig


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples; parameters and rows are split over 8 devices."""
  config = gsm8k.get_config(method, 'models/qwen2.5-1.5b', 'Qwen2.5-1.5B')
  return dataclasses.replace(
    config,
    update=UpdateConfig(microbatch_prompts=8),
    mesh=MeshConfig(fsdp=8),
  )
