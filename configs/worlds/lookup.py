"""Questions with a misleading hop, by a decoder of 83,000 parameters.

Command: python -m experiments.train --config=configs/worlds/lookup.py
  --method=rex_rag --workdir=runs/lookup
Cost: about 2 minutes on an idle CPU core.
Expected: over five seeds, in the last 20 of 200 iterations, outcome 0.93 with
  rex_rag and 0.88 with --method=grpo@no_kl, and 0.91 and 0.84 of the episodes
  that meet a dead end recover: not separated
  (experiments/papers/episodes/README.md).
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import MisleadingLookup


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 6 turns."""
  turns = 6
  return ExperimentConfig(
    iterations=200,
    task=MisleadingLookup(reward_weights={'outcome': 0.5, 'found': 0.5}),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=2,
      max_response_tokens=32,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=1, max_observation_tokens=4
      ),
    ),
    update=UpdateConfig(minibatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=64),
    verifier=VerifierConfig(num_workers=0),
  )
