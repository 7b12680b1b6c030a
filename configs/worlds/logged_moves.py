"""Moves of recorded games of KeyDoor, by a decoder of 83,000 parameters.

Think in Games: SFT on recorded moves, then GRPO with the reward 1 for the move
that was made. Of labels with noise no policy reaches more than
`task.best_accuracy`.
Command: python -m experiments.train --config=configs/worlds/logged_moves.py
  --method=grpo --set=task.noise=0.3 --workdir=runs/moves
Cost: about a minute on 2 CPU cores.
Expected: samples are right in 46%, over the last tenth of 100 iterations and
  five seeds, where the best policy has 75%; in 62% if a short SFT comes first
  (experiments/papers/episodes).
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import RecordedMoves


def get_config(method: Method) -> ExperimentConfig:
  """512 answers an iteration, of one letter."""
  return ExperimentConfig(
    iterations=150,
    task=RecordedMoves(),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=8,
      max_prompt_tokens=14,
      max_response_tokens=2,
    ),
    update=UpdateConfig(minibatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=500),
    verifier=VerifierConfig(num_workers=0),
  )
