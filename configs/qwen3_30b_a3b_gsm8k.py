"""Qwen3-30B-A3B on GSM8K, sized for a pod of 64 accelerators.

  python -m experiments.plan --config=configs/qwen3_30b_a3b_gsm8k.py
    --devices=64 --compile=false
  python -m experiments.import_weights --source=Qwen3-30B-A3B
    --out=models/qwen3-30b-a3b
  python -m experiments.train --config=configs/qwen3_30b_a3b_gsm8k.py
    --method=gspo --workdir=runs/qwen3_30b_a3b_gsm8k
A token takes 8 of 128 experts. Where sampler and trainer round differently they
may take different ones, which moves single ratios: GSPO's is of the sequence.
--add='method.losses=RouterBalance()' trains the router to use all experts.
Cost and expected numbers: not measured yet. The programs of emulated devices
compute all experts, so that only the plan and the roofline are of use.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.runtime.mesh import MeshConfig


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts x 8 samples; 16 shards of rows, 32 experts a device."""
  config = gsm8k.get_config(method, 'models/qwen3-30b-a3b', 'Qwen3-30B-A3B')
  return dataclasses.replace(
    config,
    rollout=dataclasses.replace(config.rollout, num_prompts=64),
    update=UpdateConfig(microbatch_prompts=16),
    mesh=MeshConfig(fsdp=16, tensor=4),
  )
