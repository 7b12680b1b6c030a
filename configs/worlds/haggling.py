"""Bargaining with a scripted seller, by a decoder of 20,000 parameters.

Begins with a clone of scripted buyers (configs/worlds/recorded_haggling.py).
Command: python -m experiments.train --config=configs/worlds/haggling.py
  --method=reinforce --set=model.path=runs/haggling_start
  --set=iterations=100 --workdir=runs/haggling
Cost: about a minute on 2 CPU cores.
Expected: reward/mean 0.24 +- 0.03 over the last ten iterations and five seeds,
  with deals in 0.81 of the dialogues at a sale-to-list ratio of 0.37; at the
  start 0.04, 0.64 and 0.18. Random turns have -0.05, 0.48 and 0.09, the best
  policy 0.281 (haggling_values), one that observes the type 0.563.
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
from rl_jax.worlds import Haggling


def get_config(method: Method) -> ExperimentConfig:
  """128 dialogues an iteration, which the seller's patience ends."""
  turns = 5
  return ExperimentConfig(
    iterations=100,
    task=Haggling(),
    method=method,
    model=ModelSource(
      config=presets.small(
        width=32, num_heads=2, num_kv_heads=2, head_size=16, mlp_size=64
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=2,
      max_response_tokens=4 * turns,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=2, max_observation_tokens=2
      ),
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_samples=8),
    verifier=VerifierConfig(num_workers=0),
  )
