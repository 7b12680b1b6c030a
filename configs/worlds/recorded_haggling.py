"""Dialogues of scripted buyers, then episodes with sellers of other types.

Command: python -m experiments.train
  --config=configs/worlds/recorded_haggling.py --method=sft
  --workdir=runs/haggling_start
Cost: about 30 seconds on 2 CPU cores.
Expected: evaluation/reward/mean 0.24 (greedy) and evaluation/sample_reward/mean
  0.02 at the end with seed 0; the recorded dialogues have 0.055, the best
  policy on the held-out sellers has 0.302. experiments/papers/episodes compares
  ILQL with it over seeds.
"""

import dataclasses

from configs.worlds import haggling
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.logits import ActionValueTilt
from rl_jax.pieces.statistics.action_values import num_values
from rl_jax.worlds import RecordedHaggling


def get_config(method: Method) -> ExperimentConfig:
  """64 dialogues a step; as many episodes of held-out sellers are played."""
  config, task = haggling.get_config(method), RecordedHaggling()
  reads = method.reads_action_values
  outputs = num_values(CharTokenizer(task.alphabet).vocab_size) if reads else 1
  return dataclasses.replace(
    config,
    iterations=300,
    task=task,
    model=dataclasses.replace(config.model, num_values=outputs),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=64, recorded_prompts=64, group_size=1
    ),
    update=UpdateConfig(minibatch_prompts=64),
    evaluation=dataclasses.replace(
      config.evaluation,
      every=100,
      transforms=(ActionValueTilt(),) if reads else (),
    ),
  )
