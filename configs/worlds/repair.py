"""Words to be written backwards, and pairs of the right word and a wrong one.

A wrong word has one wrong letter. The share of letters in place is the gold
score of any answer.
Command: python -m experiments.train --config=configs/worlds/repair.py
  --method=sft --set=task.form=right --set=rollout.group_size=1
  --workdir=runs/repair
Cost: about 20 seconds on 2 CPU cores, most of it compilation.
Expected: see configs/pipelines/pit.py.
"""

import dataclasses

from configs.worlds import preferences
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import RulePairs
from rl_jax.worlds import BackwardWords


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/preferences.py on words."""
  config = preferences.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=RulePairs(BackwardWords(), symbols='abcdefgh'),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=5, max_response_tokens=6
    ),
  )
