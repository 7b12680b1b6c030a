"""SmolLM2-135M-Instruct writes an expression, a calculator evaluates it.

  make quickstart-llm

or, with the model of README in models/smollm2,

  python -m experiments.train --config=configs/smollm2_expressions.py
    --method=grpo --workdir=runs/expressions

Problems come from the templates of `worlds.WordProblems`; configs/
smollm2_mawps.py has the same with public word problems. Four worked examples
are the prompt; a response ends with its line. All weights, float32, no
reference policy.
Cost and expected numbers: experiments/papers/word_problems/README.md.
"""

import dataclasses

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.source import ModelSource
from rl_jax.pieces.regularizers import KLPenalty
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import WordProblems


def get_config(method: Method) -> ExperimentConfig:
  """16 prompts x 8 samples of at most 12 tokens."""
  return ExperimentConfig(
    iterations=20,
    task=WordProblems(),
    method=without_kl(method),
    model=ModelSource(path='models/smollm2'),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=160,
      max_response_tokens=12,
      temperature=1.0,
      stop=('\n',),
    ),
    update=UpdateConfig(microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-5, warmup_steps=3),
    evaluation=EvaluationConfig(
      every=5, split='validation', num_prompts=100, batch_prompts=50
    ),
    checkpoint=CheckpointConfig(every=5, keep_last=1, keep_best=0),
    verifier=VerifierConfig(num_workers=1, timeout_seconds=5.0),
  )


def without_kl(method: Method) -> Method:
  """No KLPenalty: a reference would cost a pass and its weights."""
  losses = tuple(x for x in method.losses if not isinstance(x, KLPenalty))
  return dataclasses.replace(method, losses=losses)
