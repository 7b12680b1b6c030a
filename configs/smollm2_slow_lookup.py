"""configs/smollm2_lookup.py with tools that take ten seconds in the mean.

  python -m experiments.train --config=configs/smollm2_slow_lookup.py
    --method=grpo --workdir=runs/slow_lookup

An answer takes as long as is drawn for its request, by a lognormal law. Answers
are the same as without the delay, and so are tokens; only time differs.

Data: as of configs/smollm2_lookup.py.
Cost and expected numbers: docs/performance.md.
"""

import dataclasses
import random
import time

from configs import smollm2_lookup
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method

MEAN_SECONDS, SPREAD, MOST_SECONDS = 10.0, 1.0, 60.0


def ask(request: str) -> str:
  """Finds a similar problem, or computes a value.

  Args:
    request: 'find' and words, or an arithmetic expression
  """
  draw = random.Random(request).lognormvariate(-(SPREAD**2) / 2, SPREAD)
  time.sleep(min(MOST_SECONDS, MEAN_SECONDS * draw))
  return smollm2_lookup.ask(request)


def get_config(method: Method) -> ExperimentConfig:
  """The same prompts and limits; a turn may take two minutes."""
  base = smollm2_lookup.get_config(method)
  return dataclasses.replace(
    base,
    task=dataclasses.replace(
      base.task,
      functions=('configs.smollm2_slow_lookup:ask',),
      turn_seconds=2 * MOST_SECONDS,
    ),
    verifier=dataclasses.replace(
      base.verifier, timeout_seconds=3 * MOST_SECONDS
    ),
  )
