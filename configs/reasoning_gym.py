"""Any reasoning-gym generator by name, for a pretrained model.

  pip install 'rl_jax[tasks]'
  python -m experiments.train --config=configs/reasoning_gym.py --method=grpo
    --set=task.generator=chain_sum --set=model.path=models/smollm2
    --workdir=runs/chain_sum
Cost and expected numbers: not measured.
"""

from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import ReasoningGym
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """8 prompts x 8 samples of at most 64 tokens."""
  return ExperimentConfig(
    iterations=100,
    task=ReasoningGym(generator='chain_sum'),
    method=method,
    model=ModelSource(path='models/smollm2'),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=8,
      max_prompt_tokens=256,
      max_response_tokens=64,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-5),
    verifier=VerifierConfig(num_workers=1),
  )
