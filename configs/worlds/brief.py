"""World brief: a shorter stale, 12 iterations, for a survey of many methods.

  python -m experiments.train --config=configs/worlds/brief.py --method=grpo
    --set=model.path=runs/chain_warm --workdir=runs/brief
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about 20 seconds on 2 CPU cores.
Expected: 0.38 sampled of the start, 0.85 after GRPO (eight seeds, 0.78 to
0.88), 0.97 after REINFORCE. See experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import stale
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/stale.py with responses of 2 to 34 tokens, judged at the
  end."""
  config = stale.get_config(method)
  return dataclasses.replace(
    config,
    iterations=12,
    task=dataclasses.replace(config.task, max_operations=5),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=12, max_response_tokens=34
    ),
    evaluation=dataclasses.replace(
      config.evaluation, every=12, num_prompts=512
    ),
  )
