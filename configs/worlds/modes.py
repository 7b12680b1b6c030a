"""World modes: chain whose responses begin with a character for their mode.

  python -m experiments.sft --config=configs/worlds/modes.py
    --set=task.num_train=100000 --set=task.guesses=0.4 --set=task.slips=0.05
    --set=task.rechecks=0.3 --steps=2500 --learning_rate=2e-3
    --max_prompt_tokens=9 --max_response_tokens=40 --evaluate_every=1250
    --out=runs/modes_warm
  python -m experiments.train --config=configs/worlds/modes.py --method=a2fm
    --set=model.path=runs/modes_warm --workdir=runs/modes
Three modes: a guess, a thought, and a thought that is written twice, which
costs tokens and gains nothing. The evaluation has a set for each, in which it
is forced (evaluation/instant/pass_at_1), beside the choice of the policy, and
evaluation/consensus/pass_at_1 is that of guess and thought where they agree,
else of the thought that is written twice.
easy and hard are sets of one operation, which a guess often solves, and of two
or three.
Cost: 6 minutes for the first command and half a minute for the second, of a CPU
  core beside other jobs.
Expected: sampled accuracy 0.67 -> 0.93 with GRPO at rate 6e-4, which guesses on
  a quarter of the easy prompts and none of the others (means of five seeds; see
  experiments/papers/worlds/README.md).
"""

import dataclasses
from typing import Any

from configs.worlds import chain
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.tasks import EvaluationSet, InMode
from rl_jax.worlds import Chain
from rl_jax.worlds.chain import MODES

# Fewest and most operations of sets in which the policy chooses.
DIFFICULTIES = {'easy': (1, 1), 'hard': (2, 3)}


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/chain.py with controls, and sets by mode and difficulty."""
  config = chain.get_config(method)
  task = Chain(min_operations=1, max_operations=3, controls=True)
  tasks: dict[str, Any] = {name: InMode(task, name) for name in MODES}
  for name, (fewest, most) in DIFFICULTIES.items():
    tasks[name] = dataclasses.replace(
      task, min_operations=fewest, max_operations=most
    )
  sets = tuple(
    EvaluationSet(name=name, split='validation', task=one)
    for name, one in tasks.items()
  )
  return dataclasses.replace(
    config,
    task=task,
    model=ModelSource(config=presets.small(max_positions=128)),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=9, max_response_tokens=40
    ),
    evaluation=dataclasses.replace(
      config.evaluation, sets=sets, consensus=tuple(MODES)
    ),
  )
