"""Runs in the worlds; configs/chain.py has the command that makes the start.

export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=worlds --jitted --by_stages
  --workdir=runs/worlds
python -m experiments.papers.worlds.acting
  --out=experiments/papers/worlds/influence.jsonl
python -m experiments.papers.worlds.excerpt --workdir=runs/worlds
  --out=experiments/papers/worlds/results.jsonl
python -m experiments.table --paper=worlds --update

In MAIN every method has a learning rate of its own: the best of RATES by the
mean reward of the last third of a run, whose seed is not among those of the
comparison.
"""

import dataclasses
from typing import Any

from experiments.papers.worlds import trials
from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.runs import Setting

MAIN, BASELINE = 'stale', 'grpo'
RATES = (5e-5, 1.5e-4, 4.5e-4)
ITERATIONS = 16
TUNING_SEEDS = (100,)
# Five where a difference of three points is to be seen, three elsewhere.
SEEDS = dict.fromkeys(
  ('grpo', 'reinforce', 'gspo', 'ppo', 'topr', 'pass_at_k_grpo'), 5
)
TOKENS = 100_000  # the area is read at this many generated tokens
FIRST = 0.15  # share of a run in chain from which the rest is predicted
TOLERABLE = 0.03  # a loss that a claim of "not worse" allows
# 4 or 5 operations: half of the cost of the world's 4 to 8.
SHORT = {
  'task.max_operations': 5,
  'rollout.max_prompt_tokens': 12,
  'rollout.max_response_tokens': 34,
}
START = {'model.path': 'runs/chain_warm', **SHORT}
JUDGED = {'evaluation.num_prompts': 512, 'evaluation.num_samples': 4}


@dataclasses.dataclass(frozen=True)
class World:
  """measured: the method that runs at all rates. methods: with changes of their
  files; at the rate `best`.
  """

  measured: str
  rates: tuple[float, ...]
  best: float
  iterations: int
  methods: dict[str, Setting]
  start: Setting
  seeds: int = 2


WORLDS = {
  'unlabelled': World(
    measured='empo',
    rates=RATES,
    best=5e-5,
    iterations=ITERATIONS,
    methods={'empo': {}},
    start=START,
  ),
  'mismatch': World(
    measured='grpo',
    rates=RATES,
    best=1.5e-4,
    iterations=ITERATIONS,
    methods=dict.fromkeys(
      ('grpo', 'tis', 'tis_sequence', 'icepop', 'seq_mask_tis'), {}
    ),
    start=START,
  ),
  'returning': World(
    measured='grpo',
    rates=(1.5e-4, 4.5e-4, 1.35e-3),
    best=4.5e-4,
    iterations=24,
    methods={'grpo': {}, 'hapo': {}},
    start=START,
  ),
  'explore': World(
    measured='grpo',
    rates=(1e-4, 3e-4, 1e-3),
    best=1e-4,
    iterations=60,
    methods={
      'grpo': {},
      'clip_higher': trials.NO_FILTER,
      'kl_cov': trials.KL_COV,
      'pass_at_k_grpo': {},
    },
    start={'model.path': 'runs/explore_warm'},
  ),
}


def table_of(line: dict[str, Any]) -> str:
  """Lines of one table are of one commit; each world has its own."""
  return line['setting']['config']


def tuning(name: str, trial: trials.Trial) -> list[Setting]:
  """All rates; rewards of training judge them."""
  more = {**START, 'iterations': ITERATIONS, **trial.changes}
  (setting,) = sweep_runs.equal_conditions(MAIN, (name,), more, 1)
  return sweep_runs.crossed(
    [setting],
    sweep_runs.product({trials.RATE: RATES, 'seed': TUNING_SEEDS}),
  )


def final(
  name: str, trial: trials.Trial, rate: float, seeds: int
) -> list[Setting]:
  """Runs that end with the evaluation which is compared."""
  more = {**START, 'iterations': ITERATIONS, 'evaluation.every': ITERATIONS}
  more |= {**JUDGED, **trial.changes, trials.RATE: rate}
  return sweep_runs.equal_conditions(MAIN, (name,), more, seeds)


def elsewhere(name: str) -> list[Setting]:
  """One method at all rates of another world, others at its best rate."""
  world, found = WORLDS[name], []
  common = {'iterations': world.iterations, **JUDGED, **world.start}
  common |= {'evaluation.every': world.iterations}
  for method, changes in world.methods.items():
    rates = world.rates if method == world.measured else (world.best,)
    settings = sweep_runs.equal_conditions(
      name, (method,), {**common, **changes}, world.seeds
    )
    found += sweep_runs.crossed(
      settings, sweep_runs.product({trials.RATE: rates})
    )
  return found


def get_sweep() -> list[Setting]:
  """Tuning and comparison of every method in MAIN, then the other worlds."""
  found = []
  for name, trial in trials.TRIALS.items():
    found += tuning(name, trial)
    found += final(name, trial, trial.rate, SEEDS.get(name, 3))
  for name in WORLDS:
    found += elsewhere(name)
  return found
