"""Qwen2.5-7B-Instruct on GSM8K, sized for a pod of 64 accelerators.

  python -m experiments.plan --config=configs/qwen2p5_7b_gsm8k.py --devices=64
  python -m experiments.import_weights --source=Qwen2.5-7B-Instruct
    --out=models/qwen2.5-7b
  python -m experiments.train --config=configs/qwen2p5_7b_gsm8k.py
    --method=dapo --workdir=runs/qwen2p5_7b_gsm8k
Cost and expected numbers: not measured yet; the first command compiles the
programs for 64 emulated devices and prints memory, traffic and a roofline.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.runtime.mesh import MeshConfig


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts x 8 samples; 16 shards of rows, every layer split in 4."""
  config = gsm8k.get_config(method, 'models/qwen2.5-7b', 'Qwen2.5-7B')
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(config.rollout, num_prompts=64),
    update=UpdateConfig(microbatch_prompts=16),
    mesh=MeshConfig(fsdp=16, tensor=4),
  )
