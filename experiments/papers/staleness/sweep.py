"""GRPO with and without a correction, sampled by weights of iterations before.

export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=staleness --jitted --by_stages
  --workdir=runs/staleness
python -m experiments.papers.worlds.excerpt --workdir=runs/staleness
  --out=experiments/papers/staleness/results.jsonl
python -m experiments.table --paper=staleness --update

configs/chain.py has the command that makes the start, runs/chain_warm.
"""

from experiments.papers.worlds import sweep as worlds
from experiments.papers.worlds import trials
from experiments.sweeps import runs as sweep_runs

STALENESS = 'rollout.staleness'
BEHIND = (0, 1, 2, 4)  # iterations
METHODS = ('grpo@token_mean', 'tis', 'icepop')
SEEDS = 3


def get_sweep() -> list[sweep_runs.Setting]:
  """All methods at GRPO's rate in the world stale, judged after the last."""
  common = {
    **worlds.START,
    **worlds.JUDGED,
    'iterations': worlds.ITERATIONS,
    'evaluation.every': worlds.ITERATIONS,
    'guards.max_logp_gap': None,
    trials.RATE: trials.TRIALS[worlds.BASELINE].rate,
  }
  settings = sweep_runs.equal_conditions(worlds.MAIN, METHODS, common, SEEDS)
  return sweep_runs.crossed(settings, sweep_runs.product({STALENESS: BEHIND}))
