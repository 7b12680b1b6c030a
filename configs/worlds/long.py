"""World long: stale with 5 to 7 operations, responses of 32 to 45 tokens.

  python -m experiments.sft --config=configs/worlds/chain.py
    --set=task.max_operations=7 --set=task.num_train=100000
    --set=task.guesses=0.4 --set=task.slips=0.12 --set=task.hints=0.25
    --steps=3000 --learning_rate=2e-3 --max_prompt_tokens=30
    --max_response_tokens=46 --evaluate_every=250 --out=runs/long_warm
  python -m experiments.train --config=configs/worlds/long.py --method=grpo
    --set=model.path=runs/long_warm --workdir=runs/long
A thought has 32, 38 or 44 tokens and the answer, a guess one token only.
Cost: about 8 minutes for the first command, half a minute for the second, on 2
CPU cores.
Expected: 0.36 sampled of the start, 0.85 after GRPO (ten seeds, 0.81 to 0.88),
0.96 after REINFORCE. See experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import stale
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/stale.py with longer responses, judged at the end."""
  config = stale.get_config(method)
  return dataclasses.replace(
    config,
    iterations=16,
    task=dataclasses.replace(config.task, min_operations=5, max_operations=7),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=16, max_response_tokens=46
    ),
    evaluation=dataclasses.replace(
      config.evaluation, every=16, num_prompts=512
    ),
  )
