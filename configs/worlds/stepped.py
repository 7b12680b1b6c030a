"""World stepped: brief that pays for the share of right steps, too.

  python -m experiments.train --config=configs/worlds/stepped.py --method=mapl
    --set=model.path=runs/chain_warm --workdir=runs/stepped
configs/worlds/chain.py has the command that makes runs/chain_warm. A process
model of its steps, for oprm:
  python -m experiments.papers.worlds.step_labels
    --config=configs/worlds/brief.py --checkpoint=runs/chain_warm --prompts=600
    --completions=1 --out=runs/labels
  python -m experiments.train --config=configs/worlds/brief.py
    --method=process_reward_model --set=model.path=runs/chain_warm
    --set="task=StepRows(path='runs/labels/exact.jsonl', num_validation=100)"
    --set=rollout.group_size=1 --set=rollout.num_prompts=64
    --set=rollout.recorded_prompts=64 --set=update.minibatch_prompts=64
    --set=rollout.max_response_tokens=40 --set=iterations=200
    --set=model.value_head=True --set=evaluation.every=0
    --workdir=runs/stepped_prm
Cost: about a minute on 2 CPU cores, each command of the process model, too.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import brief
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method

WEIGHTS = {'outcome': 1.0, 'steps': 1.0}


def get_config(method: Method) -> ExperimentConfig:
  """Pairs of samples differ by more than right and wrong."""
  config = brief.get_config(method)
  task = dataclasses.replace(config.task, reward_weights=WEIGHTS)
  return dataclasses.replace(config, task=task)
