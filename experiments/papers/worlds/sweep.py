"""Runs in the worlds; README.md has the commands that make their starts.

export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=worlds --jitted --by_stages
  --workdir=runs/worlds
python -m experiments.papers.worlds.acting
  --out=experiments/papers/worlds/influence.jsonl
python -m experiments.papers.worlds.excerpt --workdir=runs/worlds
  --out=experiments/papers/worlds/results.jsonl
python -m experiments.table --paper=worlds --update

In a comparison every method has its own learning rate: the best of `rates`
by the mean reward of the last third of a run, whose seed is not among those of
the comparison.
"""

import dataclasses
import functools
import operator
from typing import Any

from experiments.papers.worlds import looped, survey, trials
from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.runs import Setting

MAIN, BASELINE = 'stale', 'grpo'
RATES = (5e-5, 1.5e-4, 4.5e-4)
ITERATIONS = 16
TUNING_SEEDS = (100,)
# The area is read at this many generated tokens; elsewhere as in MAIN.
TOKENS = {MAIN: 100_000, 'explore': 300_000, 'long': 150_000}
# Methods whose accuracy is fitted to entropy.
LAWS = {
  MAIN: ('grpo', 'reinforce', 'clip_cov', 'kl_cov'),
  'explore': ('grpo', 'reinforce', 'clip_cov', 'kl_cov'),
  'chain': ('grpo', 'clip_cov', 'kl_cov'),
  'long': ('grpo', 'reinforce', 'clip_cov', 'kl_cov'),
}
SURVEY = 'brief'  # many methods, all at one rate
# Worlds with enough seeds for a comparison, methods at the best rate of GRPO.
RANKED = ('mismatch', 'returning', 'explore', 'chain')
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
  'long': Compared(
    methods=trials.LONG,
    rates=RATES,
    iterations=ITERATIONS,
    start={'model.path': 'runs/long_warm'},
  ),
}


@dataclasses.dataclass(frozen=True)
class World:
  """A world in which few runs were made.

  measured: the method that runs at all rates. methods: with changes of their
    files; at the rate `best`. start_numbers: of the start by the names of
    `tables.METRICS`, where GRPO has no gradient and stays there. other_seeds:
    at other rates than the best; None: as many. problems: of the evaluation.
    family: methods that are judged only on `further_seeds`, which follow the
    first `seeds`; the baseline has them, too.
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
  family: tuple[str, ...] = ()
  further_seeds: int = 0

  def seeds_of(self, method: str, rate: float) -> int:
    """Seeds of a method at a rate, from 0."""
    if rate != self.best and self.other_seeds is not None:
      return self.other_seeds
    more = method in (BASELINE, *self.family)
    return self.seeds + self.further_seeds * more


WORLDS = {
  SURVEY: World(
    measured='',
    rates=(survey.RATE,),
    best=survey.RATE,
    iterations=survey.ITERATIONS,
    methods=survey.METHODS,
    start={'model.path': 'runs/chain_warm'},
    claims=survey.CLAIMS,
    seeds=survey.FIRST_SEEDS,
    family=survey.FAMILY,
    further_seeds=survey.FURTHER_SEEDS,
  ),
  'unlabelled': World(
    measured='empo',
    rates=RATES,
    best=5e-5,
    iterations=ITERATIONS,
    methods=dict.fromkeys(('empo', 'self_certainty'), {}),
    start=START,
    claims=dict.fromkeys(
      ('empo', 'self_certainty'),
      trials.Claim('higher than the start, without rewards'),
    ),
    start_numbers={'sampled': 0.396},
    seeds=5,
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
    seeds=5,
    other_seeds=2,
  ),
  'returning': World(
    measured='grpo',
    rates=(1.5e-4, 4.5e-4, 1.35e-3),
    best=4.5e-4,
    iterations=24,
    methods={'grpo': {}, 'hapo': {}},
    start=START,
    claims={'hapo': trials.SHORTER},
    seeds=5,
    other_seeds=2,
  ),
  'explore': World(
    measured='grpo',
    rates=(1e-4, 3e-4, 1e-3),
    best=3e-4,
    iterations=60,
    methods=survey.EXPLORE,
    start={'model.path': 'runs/explore_warm'},
    claims=survey.EXPLORE_CLAIMS,
    seeds=8,
    other_seeds=1,
    problems=256,
  ),
  'chain': World(
    measured='',
    rates=(3e-4,),
    best=3e-4,
    iterations=40,
    methods={'grpo': {}, 'clip_cov': trials.CLIP_COV, 'kl_cov': trials.KL_COV},
    start={
      'model.path': 'runs/long_warm',
      'task.min_operations': 5,
      'task.max_operations': 7,
      'rollout.max_prompt_tokens': 16,
      'rollout.max_response_tokens': 46,
    },
    claims=dict.fromkeys(('clip_cov', 'kl_cov'), trials.KEEPS),
    seeds=5,
  ),
}


@dataclasses.dataclass(frozen=True)
class Later:
  """Methods of a world that ran later, on a start that was made again.

  The baseline is among them. Seeds follow those of the world from `first`.
  """

  methods: dict[str, Setting]
  claims: dict[str, trials.Claim]
  first: int
  seeds: int


LATER = {
  'later': Later(
    survey.LATER, survey.LATER_CLAIMS, survey.FIRST_LATER, survey.LATER_SEEDS
  ),
  'last': Later(
    survey.LAST, survey.LAST_CLAIMS, survey.FIRST_LAST, survey.LATER_SEEDS
  ),
  'rest': Later(
    survey.REST, survey.REST_CLAIMS, survey.FIRST_REST, survey.LATER_SEEDS
  ),
}


def batch_of(line: dict[str, Any]) -> str:
  """The name in LATER of the batch that a run is of; '' of none."""
  setting = line['setting']
  if setting['config'] == SURVEY:
    for name, of in LATER.items():
      if setting['seed'] in range(of.first, of.first + of.seeds):
        return name
  return ''


def table_of(line: dict[str, Any]) -> str:
  """Lines of one table are of one commit; each world has its own.

  Rates of `long` and of `looped` were chosen, and named, between their runs.
  """
  setting = line['setting']
  choosing = {'long': TUNING_SEEDS}
  choosing |= dict.fromkeys(looped.WORLDS, (looped.TUNING_SEED,))
  tuning = setting['seed'] in choosing.get(setting['config'], ())
  words = (setting['config'], batch_of(line), 'tuning' * tuning)
  return ' '.join(word for word in words if word)


def claims_of(world: str) -> dict[str, trials.Claim]:
  """Method -> what its paper says against the baseline."""
  if world == SURVEY:
    more = [of.claims for of in LATER.values()]
    return functools.reduce(operator.or_, more, WORLDS[world].claims)
  if world in WORLDS:
    return WORLDS[world].claims
  methods = COMPARED[world].methods
  return {n: trial.claim for n, trial in methods.items() if n != BASELINE}


def methods_of(world: str) -> dict[str, Setting]:
  """Method -> changes of its file, of all methods of the world's tables."""
  if world == SURVEY:
    more = [of.methods for of in LATER.values()]
    return functools.reduce(operator.or_, more, WORLDS[world].methods)
  if world in WORLDS:
    return WORLDS[world].methods
  return {n: x.changes for n, x in COMPARED[world].methods.items()}


def start_of(world: str) -> Setting:
  """The weights from which a world's methods run, and the lengths."""
  return (WORLDS if world in WORLDS else COMPARED)[world].start


def rates_of(world: str) -> dict[str, float]:
  """Method -> the rate at which it is compared."""
  if world in WORLDS:
    return dict.fromkeys(methods_of(world), WORLDS[world].best)
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
      settings = sweep_runs.equal_conditions(
        name, (method,), {**common, **changes}, world.seeds_of(method, rate)
      )
      found += [{**setting, trials.RATE: rate} for setting in settings]
  return found


def later(of: Later) -> list[Setting]:
  """A batch of LATER, judged as the other methods of the survey."""
  world = WORLDS[SURVEY]
  common = {'iterations': world.iterations, **JUDGED, **world.start}
  common |= {'evaluation.every': world.iterations}
  settings = [
    setting | {trials.RATE: world.best}
    for method, changes in of.methods.items()
    for setting in sweep_runs.equal_conditions(
      SURVEY, (method,), {**common, **changes}, of.seeds
    )
  ]
  return [{**x, 'seed': of.first + x['seed']} for x in settings]


def get_sweep() -> list[Setting]:
  """Tuning and comparison of every method, then the other worlds."""
  found = []
  for world, of_world in COMPARED.items():
    for name, trial in of_world.methods.items():
      found += tuning(world, name)
      found += final(world, name, trial.rate, trial.seeds)
  for name in WORLDS:
    found += elsewhere(name)
  for of in LATER.values():
    found += later(of)
  return found + looped.get_sweep()
