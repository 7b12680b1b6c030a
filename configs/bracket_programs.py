"""Brackets to be closed by unit tests, by a decoder of 130,000 parameters.

B-Coder: a short cloning of right programs, then the critic alone, then logits
and a residual of the critic; recorded programs, half of them with bugs, beside
samples.
  python -m experiments.train --config=configs/bracket_programs.py --method=sft
    --set=rollout.num_prompts=64 --set=rollout.logged_prompts=64
    --set=rollout.group_size=1 --set=iterations=60 --workdir=runs/brackets
Command: python -m experiments.train --config=configs/bracket_programs.py
  --method=b_coder@values --set=model.path=runs/brackets --set=iterations=50
  --workdir=runs/bracket_values
Then --method=b_coder --set=model.path=runs/bracket_values.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import critic, presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import BracketPrograms
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """Four samples of each of 32 prompts, recorded programs of 16."""
  residual = method.num_values == 2
  return ExperimentConfig(
    iterations=60,
    task=BracketPrograms(),
    method=method,
    model=ModelSource(
      config=presets.small(),
      value_head=method.reads_values,
      num_values=method.num_values,
      critic=critic.RESIDUAL if residual else critic.SHARED,
    ),
    rollout=RolloutConfig(
      num_prompts=48,
      group_size=4,
      max_prompt_tokens=6,
      max_response_tokens=8,
      logged_prompts=16,
    ),
    update=UpdateConfig(minibatch_prompts=24, epochs=2),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=20, num_prompts=200, num_samples=4),
    verifier=VerifierConfig(num_workers=0),
  )
