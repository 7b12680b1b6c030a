"""World two_rewards: brief whose responses are paid for guesses, too.

Command: python -m experiments.train --config=configs/worlds/two_rewards.py
  --method=mo_grpo
  --set="method.credit.ComponentScale.components=('outcome','guessed')"
  --set=model.path=runs/chain_warm --workdir=runs/two_rewards
configs/worlds/chain.py has the command that makes runs/chain_warm.
Cost: about 20 seconds on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import brief
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method

WEIGHTS = {'outcome': 1.0, 'guessed': 3.0}


def get_config(method: Method) -> ExperimentConfig:
  """A guess, which is seldom right, pays three times as much as a right answer.

  The two contradict each other: thoughts are right and no guesses.
  """
  config = brief.get_config(method)
  task = dataclasses.replace(config.task, reward_weights=WEIGHTS)
  return dataclasses.replace(config, task=task)
