"""Kuhn poker against itself, by a decoder of 83,000 parameters.

  python -m experiments.train --config=configs/kuhn.py --method=spiral
    --set=method.aggregation.length=2.0
    --add='method.losses=EntropyBonus(coef=0.2)' --workdir=runs/kuhn
  python -m experiments.tools.exploitability --checkpoint=runs/kuhn
Cost: about 4 minutes on 2 CPU cores. Needs the extra 'games'.
Expected: nash_conv 0.30 +- 0.14 after 200 iterations (five seeds; 0.92 of
  uniform legal actions, 0 at the equilibrium), with seed 0 0.26, 0.34, 0.29,
  0.31 after 50, 100, 150, 200. Without the bonus the policy is deterministic
  after 40 iterations and has 0.50 +- 0.21 (a third, a half or two thirds).
  By CFR over latent strategies 0.10: configs/pipelines/lspo.py.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import OpenSpiel
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """128 games an iteration; both players of a game are rows."""
  return ExperimentConfig(
    iterations=200,
    task=OpenSpiel(name='kuhn_poker', alphabet='012pb>'),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      )
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=4,
      max_response_tokens=6,
      turns=TurnConfig(
        max_turns=2, max_turn_tokens=1, max_observation_tokens=2
      ),
    ),
    update=UpdateConfig(minibatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=5e-4),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=0),
  )
