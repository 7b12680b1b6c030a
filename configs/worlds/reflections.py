"""Reflections between trials of an actor, by a decoder of 83,000 parameters.

Command: python -m experiments.train --config=configs/worlds/reflections.py
  --method=retroformer --workdir=runs/reflections
The actor is a script; --set=task.actor=constant is one that never listens. A
frozen model: --set=task.actor=model
--add='partners=Partner(name="actor", path="runs/actor", max_tokens=8,
answer_tokens=4)' with the lessons of configs/worlds/partner_lessons.py.
Cost: about a minute on 2 CPU cores.
Expected: over five seeds the goal is reached by trials 2, 3, 4 in 20%, 42% and
  51% +- 10% of the episodes of the last ten iterations, in 0.3% or less before
  training. With a constant actor the reward is 0 throughout. See
  experiments/papers/episodes/README.md.
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
from rl_jax.worlds import Reflections


def get_config(method: Method) -> ExperimentConfig:
  """256 episodes of 4 trials an iteration."""
  trials = 4
  return ExperimentConfig(
    iterations=100,
    task=Reflections(trials=trials),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=2,
      max_response_tokens=5 * trials,
      turns=TurnConfig(
        max_turns=trials, max_turn_tokens=3, max_observation_tokens=2
      ),
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=0),
  )
