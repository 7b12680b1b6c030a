"""World modes: chain whose responses begin with a character for their mode.

  python -m experiments.sft --config=configs/modes.py
    --set=task.num_train=100000 --set=task.guesses=0.4 --set=task.slips=0.12
    --set=task.rechecks=0.3 --steps=1500 --learning_rate=2e-3
    --max_prompt_tokens=28 --max_response_tokens=100 --evaluate_every=500
    --out=runs/modes_warm
  python -m experiments.train --config=configs/modes.py --method=a2fm
    --set=model.path=runs/modes_warm --workdir=runs/modes
Three modes: a guess, a thought, and a thought that is written twice, which
costs tokens and gains nothing. The evaluation has a set for each, in which it
is forced (evaluation/instant/pass_at_1), beside the choice of the policy, and
evaluation/consensus/pass_at_1 is that of guess and thought where they agree,
else of the thought that is written twice.
Cost: about 9 minutes for the first command, 1 for the second, on 2 CPU cores.
Expected: sampled accuracy 0.38 -> 0.73, GRPO 0.86 (means of three seeds; see
  experiments/papers/worlds/README.md).
"""

import dataclasses

from configs import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Chain, EvaluationSet, InMode
from rl_jax.tasks.chain import MODES


def get_config(method: Method) -> ExperimentConfig:
  """configs/chain.py with controls and room for thoughts written twice."""
  config = chain.get_config(method)
  task = Chain(max_operations=6, controls=True)
  sets = tuple(
    EvaluationSet(name=name, split='validation', task=InMode(task, name))
    for name in MODES
  )
  return dataclasses.replace(
    config,
    task=task,
    model=dataclasses.replace(
      config.model,
      config=dataclasses.replace(config.model.config, max_positions=128),
    ),
    rollout=dataclasses.replace(config.rollout, max_response_tokens=80),
    evaluation=dataclasses.replace(
      config.evaluation, sets=sets, consensus=tuple(MODES)
    ),
  )
