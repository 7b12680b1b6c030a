"""A digit that a fast or a slow tool tells, by a decoder of 10,000 parameters.

Command: python -m experiments.train --config=configs/worlds/priced_tools.py
  --method=otc --workdir=runs/priced_tools
Cost: about a minute on 2 CPU cores.
Expected: experiments/papers/episodes/README.md compares methods over seeds.
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
from rl_jax.worlds import PricedTools


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 4 turns."""
  turns = 4
  return ExperimentConfig(
    iterations=60,
    task=PricedTools(),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_layers=1,
        width=32,
        num_heads=2,
        num_kv_heads=2,
        head_size=16,
        mlp_size=64,
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=2,
      max_response_tokens=3 * turns,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=1, max_observation_tokens=2
      ),
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=3e-3),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=0),
  )
