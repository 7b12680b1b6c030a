"""World explore: 2 to 4 operations, from a start that believes wrong results.

  python -m experiments.sft --config=configs/worlds/explore.py
    --model=runs/chain_warm --set=task.num_train=100000 --steps=200
    --learning_rate=2e-3 --max_prompt_tokens=10 --max_response_tokens=28
    --evaluate_every=100 --out=runs/explore_warm
  python -m experiments.evaluate --checkpoint=runs/explore_warm --data=explore
    --num_samples=64 --limit=512
  python -m experiments.train --config=configs/worlds/explore.py --method=grpo
    --set=model.path=runs/explore_warm --workdir=runs/explore
configs/worlds/chain.py has the command that makes runs/chain_warm, which knows
all facts; 200 steps make it believe what the teacher believes.
Cost: about a minute for each command on 2 CPU cores.
Expected: 0.035 sampled of the start, 0.61 after 60 iterations of GRPO at 3e-4
(eight seeds, 0.52 to 0.74); 0.31 from another start of the same command. See
experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.worlds import BelievedChain


def get_config(method: Method) -> ExperimentConfig:
  """16 prompts x 16 samples of at most 28 tokens; problems come back."""
  config = chain.get_config(method)
  return dataclasses.replace(
    config,
    iterations=60,
    task=BelievedChain(min_operations=2, max_operations=4, num_train=512),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=16,
      group_size=16,
      max_prompt_tokens=10,
      max_response_tokens=28,
    ),
    update=UpdateConfig(minibatch_prompts=4),
  )
