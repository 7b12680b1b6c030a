"""Worlds and claims of the episodes, and the grid that most of them share."""

import dataclasses
from typing import Any

from experiments.sweeps import runs as sweep_runs


@dataclasses.dataclass(frozen=True)
class World:
  """Runs under equal conditions: methods x seeds; the first is the baseline.

  own: more settings of single methods.
  """

  config: str
  methods: tuple[str, ...]
  common: dict[str, Any]
  own: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

  def settings(self) -> list[sweep_runs.Setting]:
    """A run for each method and seed."""
    return sweep_runs.chain(
      *(
        sweep_runs.equal_conditions(
          self.config, (name,), self.common | self.own.get(name, {}), SEEDS
        )
        for name in self.methods
      )
    )


@dataclasses.dataclass(frozen=True)
class Claim:
  """Row of the table: a (world, method) against another or against a number.

  metric: of a line's `last`, or 'A per B' of two. sign: of the claimed
  difference; 0: not worse. base: method whose values are subtracted in both
  worlds; '' none.
  """

  source: str
  text: str
  one: tuple[str, str]
  other: tuple[str, str] | float
  metric: str
  sign: int = 1
  base: str = ''


SEEDS = 5
# A grid whose shortest solution has four actions: a policy that begins with
# random letters finds it. A run takes five seconds of a core.
GRID = {
  'task.seed': 58,
  'task.num_train': 1,
  'model.config.num_layers': 1,
  'model.config.width': 32,
  'model.config.num_heads': 2,
  'model.config.num_kv_heads': 2,
  'model.config.mlp_size': 64,
  'rollout.num_prompts': 8,
  'rollout.turns.max_turns': 10,
  'rollout.max_response_tokens': 50,
  'update.minibatch_prompts': 4,
  'optimizer.learning_rate': 3e-3,
  'iterations': 60,
}
WEIGHTS = 'task.reward_weights'
SPARSE = {**GRID, WEIGHTS: "{'outcome': 1.0}"}
MAZE = {**GRID, WEIGHTS: "{'maze': 1.0}"}
NO_KL = {**SPARSE, 'method.shaping.KLInReward.coef': 0.0}
# Begins with well-formed turns of random words; README has its command.
PLANNED = {
  **GRID,
  'model.path': 'runs/planned_start',
  'rollout.max_response_tokens': 70,
  'optimizer.learning_rate': 1e-3,
}
# Metrics of claims.
OUTCOME, CALLS = 'mean/outcome', 'final/calls'
RIGHT = 'final/outcome'
# The shortest solution earns -3, ten impossible actions -40.
NEAR_BEST = -3.0 - 0.05 * 37.0
