"""Episodes of a key, a door and a goal, by a decoder of 83,000 parameters.

Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=grpo --workdir=runs/keydoor
Cost: about 4 minutes on 2 CPU cores.
Expected: reward/mean 0.86 after 150 iterations with seed 0 (random: 0.05).
With the last two turns only in the context (0.81 without it, means of the last
  ten iterations, seed 0): 0.58, at four times the cost, by
  --set="task=MemoryWindow(task=KeyDoor(reward_weights={'outcome': 0.5,
  'progress': 0.5}), turns=2)" --set=rollout.max_response_tokens=256
Several seeds as one program: python -m experiments.sweep --jitted --seeds=5
  --config=configs/worlds/keydoor.py --method=grpo --workdir=runs/keydoor_seeds
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
from rl_jax.worlds import KeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 16 turns."""
  turns = 16
  return ExperimentConfig(
    iterations=150,
    task=KeyDoor(reward_weights={'outcome': 0.5, 'progress': 0.5}),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      )
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=14,
      max_response_tokens=5 * turns,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=1, max_observation_tokens=4
      ),
    ),
    update=UpdateConfig(minibatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=64),
    verifier=VerifierConfig(num_workers=0),
  )
