"""FrozenLake of Gymnasium without slipping, by a decoder of 30,000 parameters.

The policy reads the number of its square and writes l, d, r or u; six actions
at least lead past the holes. A letter that is no action costs 0.1, so that they
are learned first.
Command: python -m experiments.train --config=configs/frozen_lake.py
  --method=turn_ppo --workdir=runs/frozen_lake
Cost: a minute of a CPU core. Needs the extra 'games'.
Expected: over five seeds, in the last six iterations, 98% of drawn episodes end
  at the goal with turn_ppo (one seed 91%) and 99% with grpo.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import GymnasiumText
from rl_jax.verification.pool import VerifierConfig

WORDS = ('l', 'd', 'r', 'u')


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most ten turns."""
  turns, refusal = 10, f'Not an action: {", ".join(WORDS)}\n'
  return ExperimentConfig(
    iterations=60,
    task=GymnasiumText(
      name='FrozenLake-v1',
      options={'is_slippery': False},
      words=WORDS,
      alphabet=''.join(sorted({*'0123456789', *refusal})),
      reward_weights={'reward': 1.0, 'invalid': -0.1},
    ),
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
      max_response_tokens=turns * (1 + len(refusal)),
      turns=TurnConfig(
        max_turns=turns,
        max_turn_tokens=1,
        max_observation_tokens=len(refusal),
      ),
    ),
    update=UpdateConfig(minibatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=0),
  )
