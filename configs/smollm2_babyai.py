"""SmolLM2-135M-Instruct learns recorded walks in BabyAI, then plays.

What a policy owes to its pre-training (LID, M89): the same steps on the same
walks of the bot, beside a model of the same sizes with random weights.
Command: python -m experiments.train --config=configs/smollm2_babyai.py
  --method=sft --workdir=runs/babyai_llm
Untrained: python -m experiments.import_weights --source=models/smollm2
  --untrained=0 --out=runs/untrained, then --set=model.path=runs/untrained
  --set=optimizer.learning_rate=3e-4.
Cost: 27 minutes of a CPU core. Needs the extra 'games'.
Expected: with seed 0 65% of 100 held-out missions after 30 steps, none before
  (evaluation/reward/outcome); untrained 52%, at a rate that was not tuned.
"""

import dataclasses

from configs import babyai
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.tasks import RecordedWalks


def get_config(method: Method) -> ExperimentConfig:
  """16 walks a step, of 200; 100 missions are played greedily."""
  turns, spoken, observed = 7, 2, 20
  config = babyai.get_config(method)
  return dataclasses.replace(
    config,
    iterations=30,
    task=RecordedWalks(
      task=dataclasses.replace(config.task, num_train=200),
      noise=0.0,
      turns=turns,
      num_recorded=1,
    ),
    model=ModelSource(path='models/smollm2'),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=16,
      group_size=1,
      recorded_prompts=16,
      max_prompt_tokens=26,
      max_response_tokens=118,  # of the longest of the walks
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=spoken, max_observation_tokens=observed
      ),
    ),
    update=UpdateConfig(minibatch_prompts=16, microbatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=3e-5, warmup_steps=3),
    evaluation=dataclasses.replace(
      config.evaluation, every=30, num_prompts=100, num_samples=0
    ),
    checkpoint=CheckpointConfig(every=30, keep_last=1, keep_best=0),
  )
