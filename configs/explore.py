"""World explore: countdown with 5 digits, from a start that solves few.

  python -m experiments.sft --config=configs/explore.py
    --set=task.max_target=10 --steps=400 --learning_rate=2e-3
    --max_prompt_tokens=10 --max_response_tokens=10 --evaluate_every=200
    --out=runs/explore_warm
  python -m experiments.evaluate --checkpoint=runs/explore_warm --data=explore
    --num_samples=64 --limit=512
  python -m experiments.train --config=configs/explore.py --method=grpo
    --set=model.path=runs/explore_warm --workdir=runs/explore
The start has seen targets up to 10, a quarter of those that are trained. Four
optimizer steps a rollout, 16 samples a prompt.
Cost: about a minute for each command on 2 CPU cores.
Expected: 0.019 sampled and 0.37 at pass@64 of the start; 0.03 sampled after 60
iterations of GRPO at 1e-4. See experiments/papers/worlds/README.md.
"""

import dataclasses

from configs import countdown_small
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Countdown


def get_config(method: Method) -> ExperimentConfig:
  """configs/countdown_small.py with 5 digits; only solutions are rewarded."""
  small = countdown_small.get_config(method)
  return dataclasses.replace(
    small,
    task=Countdown(
      min_numbers=5,
      max_numbers=5,
      num_train=10_000,
      reward_weights={'outcome': 1.0},
    ),
    rollout=dataclasses.replace(
      small.rollout, group_size=16, max_prompt_tokens=10, max_response_tokens=10
    ),
  )
