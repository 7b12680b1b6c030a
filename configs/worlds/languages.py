"""Words written backwards in three languages, each with its own letters.

The problems are the same; `high` has four times as many prompts in supervised
training as `low`. Responses have a graded gold score, the share of letters in
place, so that several can be ranked.
Command: python -m experiments.train --config=configs/worlds/languages.py
  --method=sft --set=rollout.group_size=1 --workdir=runs/languages
Cost: about 30 seconds on 2 CPU cores.
Expected: see configs/pipelines/okapi.py.
"""

import dataclasses

from configs.worlds import preferences
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import Mixture, MixturePart, Relabelled
from rl_jax.worlds import BackwardWords

LETTERS = {'high': 'abcdefgh', 'middle': 'ijklmnop', 'low': 'qrstuvwx'}
SHARES = {'high': 4.0, 'middle': 2.0, 'low': 1.0}  # of supervised prompts


def get_config(method: Method) -> ExperimentConfig:
  """128 prompts an iteration, recorded or sampled."""
  parts = (
    MixturePart(
      name=name,
      task=Relabelled(
        task=BackwardWords(),
        symbols='abcdefgh',
        letters=letters,
        tag=name[0].upper(),
      ),
      weight=SHARES[name],
    )
    for name, letters in LETTERS.items()
  )
  config = preferences.get_config(method)
  return dataclasses.replace(
    config,
    task=Mixture(tuple(parts)),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=128,
      group_size=1,
      max_response_tokens=6,
      recorded_prompts=128,
    ),
    evaluation=dataclasses.replace(config.evaluation, num_prompts=384),
  )
