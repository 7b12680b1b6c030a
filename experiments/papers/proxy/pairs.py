"""Losses on pairs in the world proxy, on the comparisons of the reward model.

They read the 3,000 comparisons five times, 30,000 rows.
"""

import dataclasses

from experiments.sweeps.runs import Setting


@dataclasses.dataclass(frozen=True)
class Claim:
  """What a paper says of the rule at the end against DPO; named beforehand.

  sign: of the difference; 0: not worse.
  """

  text: str
  sign: int = 1


BASELINE = 'dpo'
METHODS: dict[str, Claim | None] = {
  BASELINE: None,
  'rpo': Claim('less over-optimisation'),
}
# And of DPO: the rule falls between the first reading of the pairs and the
# fifth, while the divergence grows.
FIRST_READING = 60  # iterations
COMMON = {
  'config': 'proxy',
  'guards.log_rollouts': 0,
  'checkpoint.every': 10**9,
  'task.num_train': 3000,
  'iterations': 300,
  'checkpoint.weights_every': 30,
}
SEEDS = range(30, 33)


def settings() -> list[Setting]:
  """Seeds x methods."""
  return [
    COMMON | {'method': name, 'seed': seed}
    for seed in SEEDS
    for name in METHODS
  ]


def steps(setting: Setting) -> list[int]:
  """The iterations whose weights were kept."""
  every = setting['checkpoint.weights_every']
  return list(range(every, setting['iterations'] + 1, every))
