"""Hints for a frozen writer, by a decoder of 83,000 parameters.

The writer is that of configs/worlds/partner_lessons.py, runs/writer.
Command: python -m experiments.train --config=configs/worlds/hinted_keywords.py
  --method=nlpo --set=method.logits.LaggedSupport.min_percent=10
  --workdir=runs/hinted_keywords
Cost: about 1.5 minutes on 2 CPU cores.
Expected: over five seeds the F1 of the writer's letters with the keywords is
  0.32 with hints of random letters and 0.90 +- 0.01 in the last 15 iterations;
  without a hint 0.33.
"""

import dataclasses

from configs.worlds import reflections
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.models.partner_source import Partner
from rl_jax.worlds import HintedKeywords


def get_config(method: Method) -> ExperimentConfig:
  """256 documents an iteration; the writer reads each with and without hint."""
  config = reflections.get_config(method)
  writer = Partner(
    path='runs/writer', name='writer', max_tokens=16, answer_tokens=8
  )
  return dataclasses.replace(
    config,
    iterations=150,
    task=HintedKeywords(),
    partners=(writer,),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=7,
      max_response_tokens=4,
      turns=TurnConfig(
        max_turns=1, max_turn_tokens=4, max_observation_tokens=1
      ),
    ),
  )
