"""TextWorld's small rooms, by a decoder of 140,000 parameters.

Begins with a clone of recorded walks (configs/recorded_text_rooms.py).
Command: python -m experiments.train --config=configs/text_rooms.py
  --method=ppo@turn_rewards --set="task.reward_weights={'progress': 1.0}"
  --set=model.path=runs/text_rooms_start --workdir=runs/text_rooms
Cost: about a minute of a CPU core, half of it for the games. Needs the extra
  'textworld'.
Expected: reward/outcome 0.47 over the last three iterations in the mean of
  five seeds, 0.27 with --method=ppo, 0.25 with grpo. In other games less is won
  than by the start, but with 192 games (--set=task.num_train=192
  --set=optimizer.learning_rate=3e-4 --set=iterations=60) more:
  experiments/papers/episodes.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import TextWorld
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """32 episodes an iteration, of at most six commands."""
  turns = 6
  return ExperimentConfig(
    iterations=30,
    task=TextWorld(
      rooms=2,
      objects=3,
      quest_length=3,
      theme='basic',
      num_train=8,
      num_held_out=32,
    ),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=256
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=4,
      group_size=8,
      max_prompt_tokens=64,
      max_response_tokens=28 * turns,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=12, max_observation_tokens=44
      ),
    ),
    update=UpdateConfig(minibatch_prompts=2),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=30, num_samples=2),
    verifier=VerifierConfig(num_workers=0),
  )
