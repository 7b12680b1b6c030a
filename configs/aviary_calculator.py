"""Sums in words with a calculator, by a decoder of 90,000 parameters.

A data set of Aviary (configs/environments/word_sums.py); the policy begins with
a clone of recorded episodes (configs/recorded_aviary_calculator.py).
Command: python -m experiments.train --config=configs/aviary_calculator.py
  --method=expert_iteration --set=model.path=runs/aviary_start
  --workdir=runs/aviary_calculator
Without the calculator: --set="task.options={'tools': 'submit'}". To evaluate a
run afterwards, with a majority of eight samples:
  python -m experiments.evaluate --checkpoint=runs/aviary_calculator
    --import=configs.environments.word_sums --num_samples=8 --borda_power=0.5
Cost: a minute of a CPU core. Needs the extra 'aviary'.
Expected: over five seeds 0.33 of drawn episodes with held-out sums are right,
  0.38 of greedy ones and 0.36 of majorities of eight; of the clone 0.10, 0.36
  and 0.19; without the calculator 0.00. experiments/papers/episodes compares.
"""

import dataclasses

from configs.environments import word_sums
from configs.worlds import lookup
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.tasks import Aviary


def get_config(method: Method) -> ExperimentConfig:
  """64 episodes an iteration, of at most three turns."""
  turns, spoken, observed = 3, 9, 7
  config = lookup.get_config(method)
  return dataclasses.replace(
    config,
    iterations=30,
    task=Aviary(
      dataset='configs.environments.word_sums:WordSums',
      options={'tools': 'both'},
      shown='none',
      answer_tool='submit_answer',
      alphabet=word_sums.PIECES,
      num_train=4000,
      num_held_out=500,
    ),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=8,
      max_prompt_tokens=7,
      max_response_tokens=turns * spoken + (turns - 1) * observed,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=spoken, max_observation_tokens=observed
      ),
    ),
    evaluation=EvaluationConfig(
      every=30, num_prompts=64, num_samples=8, borda_power=0.5
    ),
  )
