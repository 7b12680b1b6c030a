"""World proxy: a gold rule, and a reward model that saw few comparisons of it.

A method that learns from pairs reads the comparisons; the others sample, with
only the learned reward: the gold score has weight 0 and is measured as
reward/outcome.
  python -m experiments.train --config=configs/worlds/proxy.py
    --method=reward_model --workdir=runs/proxy_rm
  python -m experiments.train --config=configs/worlds/proxy.py --method=grpo
    --add='reward_models=RewardModel(path="runs/proxy_rm")'
    --workdir=runs/proxy_grpo
Cost: half a minute for each command on 2 CPU cores.
Expected: see experiments/papers/proxy/README.md.
"""

import dataclasses

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.pieces.shaping import ReferenceSigmoid
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import base
from rl_jax.worlds import Motifs


@dataclasses.dataclass(frozen=True)
class ReferencedMotifs(Motifs):
  """Motifs whose reference response has reward 0, for PAR.

  `CenteredScores` holds the mean score of the random texts of the comparisons
  at 0.
  """

  reward_weights: dict[str, float] = base.weights_field(
    outcome=1.0, reference_reward=0.0
  )

  def reward(self, example: base.Example, response: str) -> dict[str, float]:
    """The gold score, and 0."""
    return {**super().reward(example, response), 'reference_reward': 0.0}


def get_config(method: Method) -> ExperimentConfig:
  """50 pairs an iteration, or 16 prompts x 8 samples."""
  data = any(piece.from_data for _, piece in method.pieces())
  weights = {'outcome': float(data)}
  task: Motifs = Motifs(reward_weights=weights)
  if any(isinstance(one, ReferenceSigmoid) for _, one in method.pieces()):
    task = ReferencedMotifs(reward_weights=weights | {'reference_reward': 0.0})
  return ExperimentConfig(
    iterations=60 if data else 200,
    task=task,
    method=method,
    model=ModelSource(
      config=presets.small(),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=50 if data else 16,
      group_size=2 if data else 8,
      max_prompt_tokens=1,
      max_response_tokens=13,
      recorded_prompts=50 if data else 0,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=0),
  )
