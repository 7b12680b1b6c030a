"""Qwen2.5-0.5B-Instruct on GSM8K, sized for accelerators that notebooks lend.

  python -m experiments.plan --config=configs/qwen2p5_0p5b_notebook.py
    --target=tpu:v5e:1x1
  python -m experiments.train --config=configs/qwen2p5_0p5b_notebook.py
    --set=model.path=Qwen2.5-0.5B-Instruct --workdir=runs/notebook
On one device it trains adapters. On eight it trains all weights:
--set=mesh.fsdp=8 --set=model.lora_rank=0 --set=update.microbatch_prompts=8
--set=optimizer.learning_rate=1e-6. docs/notebooks/ has notebooks for both.
Cost and expected numbers: not measured yet; the first command compiles the
programs for one TPU v5e.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """16 prompts x 8 samples of at most 256 tokens, adapters of rank 16."""
  config = gsm8k.get_config(method, 'models/qwen2.5-0.5b', 'Qwen2.5-0.5B')
  return dataclasses.replace(
    config,
    iterations=60,
    # A T4 has no bfloat16 and computes in float32.
    model=dataclasses.replace(
      config.model, compute_dtype='auto', lora_rank=16, lora_alpha=32.0
    ),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=16,
      max_prompt_tokens=256,
      max_response_tokens=256,
    ),
    update=UpdateConfig(microbatch_prompts=1),
    optimizer=OptimizerConfig(learning_rate=2e-5, warmup_steps=5),
    evaluation=EvaluationConfig(
      every=20, split='test', num_prompts=64, batch_prompts=64
    ),
  )
