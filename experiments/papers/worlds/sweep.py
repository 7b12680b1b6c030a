"""Runs in the worlds; configs/chain.py has the command that makes the start.

export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=worlds --jitted --by_stages
  --workdir=runs/worlds
python -m experiments.papers.worlds.acting
  --out=experiments/papers/worlds/influence.jsonl
python -m experiments.papers.worlds.excerpt --workdir=runs/worlds
  --out=experiments/papers/worlds/results.jsonl
python -m experiments.table --paper=worlds --update

In a comparison every method has a learning rate of its own: the best of `rates`
by the mean reward of the last third of a run, whose seed is not among those of
the comparison.
"""

import dataclasses
from typing import Any

from experiments.papers.worlds import survey, trials
from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.runs import Setting

MAIN, BASELINE = 'stale', 'grpo'
RATES = (5e-5, 1.5e-4, 4.5e-4)
ITERATIONS = 16
TUNING_SEEDS = (100,)
# The area is read at this many generated tokens; elsewhere as in MAIN.
TOKENS = {MAIN: 100_000, 'explore': 300_000}
# Methods whose accuracy is fitted to entropy.
LAWS = {
  MAIN: ('grpo', 'reinforce', 'clip_cov', 'kl_cov'),
  'explore': ('grpo', 'reinforce'),
  'chain': ('grpo', 'clip_cov'),
}
SURVEY = 'brief'  # many methods, all at one rate
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
class Compared:
  """A world in which methods are compared, each at the best of the rates."""

  methods: dict[str, trials.Trial]
  rates: tuple[float, ...]
  iterations: int
  start: Setting


COMPARED = {
  'stale': Compared(
    methods=trials.STALE,
    rates=RATES,
    iterations=ITERATIONS,
    start=START,
  ),
}


@dataclasses.dataclass(frozen=True)
class World:
  """A world in which few runs were made.

  measured: the method that runs at all rates. methods: with changes of their
    files; at the rate `best`. start_numbers: of the start by the names of
    `tables.METRICS`, where GRPO has no gradient and stays there. other_seeds:
    at other rates than the best; None: as many. problems: of the evaluation.
  """

  measured: str
  rates: tuple[float, ...]
  best: float
  iterations: int
  methods: dict[str, Setting]
  start: Setting
  claims: dict[str, trials.Claim]
  start_numbers: dict[str, float] = dataclasses.field(default_factory=dict)
  seeds: int = 2
  other_seeds: int | None = None
  problems: int = 512


WORLDS = {
  SURVEY: World(
    measured='',
    rates=(survey.RATE,),
    best=survey.RATE,
    iterations=survey.ITERATIONS,
    methods=survey.METHODS,
    start={'model.path': 'runs/chain_warm'},
    claims=survey.CLAIMS,
    seeds=3,
  ),
  'unlabelled': World(
    measured='empo',
    rates=RATES,
    best=5e-5,
    iterations=ITERATIONS,
    methods={'empo': {}},
    start=START,
    claims={'empo': trials.Claim('higher than the start, without rewards')},
    start_numbers={'sampled': 0.391},
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
    claims=dict.fromkeys(
      ('tis', 'tis_sequence', 'icepop', 'seq_mask_tis'),
      trials.Claim('higher where the sampler differs'),
    ),
  ),
  'returning': World(
    measured='grpo',
    rates=(1.5e-4, 4.5e-4, 1.35e-3),
    best=4.5e-4,
    iterations=24,
    methods={'grpo': {}, 'hapo': {}},
    start=START,
    claims={'hapo': trials.SHORTER},
  ),
  'explore': World(
    measured='grpo',
    rates=(1e-4, 3e-4, 1e-3),
    best=3e-4,
    iterations=60,
    methods={'grpo': {}, 'reinforce': {}},
    start={'model.path': 'runs/explore_warm'},
    claims={'reinforce': trials.LOWER},
    seeds=3,
    other_seeds=1,
    problems=256,
  ),
  'chain': World(
    measured='',
    rates=(3e-4,),
    best=3e-4,
    iterations=40,
    methods={'grpo': {}, 'clip_cov': trials.CLIP_COV},
    start=START,
    claims={'clip_cov': trials.KEEPS},
    seeds=3,
  ),
}


def table_of(line: dict[str, Any]) -> str:
  """Lines of one table are of one commit; each world has its own."""
  return line['setting']['config']


def claims_of(world: str) -> dict[str, trials.Claim]:
  """Method -> what its paper says against the baseline."""
  if world in WORLDS:
    return WORLDS[world].claims
  methods = COMPARED[world].methods
  return {n: trial.claim for n, trial in methods.items() if n != BASELINE}


def rates_of(world: str) -> dict[str, float]:
  """Method -> the rate at which it is compared."""
  if world in WORLDS:
    return dict.fromkeys(WORLDS[world].methods, WORLDS[world].best)
  return {n: trial.rate for n, trial in COMPARED[world].methods.items()}


def tuning(world: str, name: str) -> list[Setting]:
  """A method at all rates; rewards of training judge them."""
  of_world = COMPARED[world]
  more = {**of_world.start, 'iterations': of_world.iterations}
  more |= of_world.methods[name].changes
  (setting,) = sweep_runs.equal_conditions(world, (name,), more, 1)
  return sweep_runs.crossed(
    [setting],
    sweep_runs.product({trials.RATE: of_world.rates, 'seed': TUNING_SEEDS}),
  )


def final(world: str, name: str, rate: float, seeds: int) -> list[Setting]:
  """Runs that end with the evaluation which is compared."""
  of_world = COMPARED[world]
  more = {**of_world.start, 'iterations': of_world.iterations}
  more |= {'evaluation.every': of_world.iterations, **JUDGED}
  more |= {**of_world.methods[name].changes, trials.RATE: rate}
  return sweep_runs.equal_conditions(world, (name,), more, seeds)


def elsewhere(name: str) -> list[Setting]:
  """One method at all rates of another world, others at its best rate."""
  world, found = WORLDS[name], []
  common = {'iterations': world.iterations, **JUDGED, **world.start}
  common |= {'evaluation.every': world.iterations}
  common |= {'evaluation.num_prompts': world.problems}
  for method, changes in world.methods.items():
    rates = world.rates if method == world.measured else (world.best,)
    for rate in rates:
      seeds = world.seeds
      if rate != world.best and world.other_seeds is not None:
        seeds = world.other_seeds
      settings = sweep_runs.equal_conditions(
        name, (method,), {**common, **changes}, seeds
      )
      found += [{**setting, trials.RATE: rate} for setting in settings]
  return found


def get_sweep() -> list[Setting]:
  """Tuning and comparison of every method, then the other worlds."""
  found = []
  for world, of_world in COMPARED.items():
    for name, trial in of_world.methods.items():
      found += tuning(world, name)
      found += final(world, name, trial.rate, trial.seeds)
  for name in WORLDS:
    found += elsewhere(name)
  return found
