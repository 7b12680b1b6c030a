"""What the worlds chain and stale are worth: rates of GRPO, seeds, methods.

configs/chain.py has the command that makes runs/chain_warm; then
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=worlds --jitted --by_stages
  --workdir=runs/worlds

Prompts of one run are all new, so rewards of training are sampled accuracy on
problems never seen.
"""

from experiments.sweeps import runs as sweep_runs

SETTING = {'model.path': 'runs/chain_warm'}
RATES = {'chain': (1e-4, 3e-4, 1e-3), 'stale': (3e-5, 1e-4, 3e-4)}
BEST = {'chain': 3e-4, 'stale': 1e-4}  # GRPO's, at which all others run
SEEDS = {'grpo': 5, 'reinforce': 5}  # two of the other methods
METHODS = {
  'chain': ('grpo', 'reinforce', 'clip_cov', 'gspo'),
  'stale': ('grpo', 'reinforce', 'topr', 'cispo', 'gspo', 'sapo', 'dro'),
}


def get_sweep() -> list[sweep_runs.Setting]:
  """Methods at GRPO's rate, then GRPO at the other rates with two seeds."""
  found = []
  for world, methods in METHODS.items():
    rates = [rate for rate in RATES[world] if rate != BEST[world]]
    parts = [((m,), (BEST[world],), SEEDS.get(m, 2)) for m in methods]
    for names, some, seeds in [*parts, (('grpo',), rates, 2)]:
      settings = sweep_runs.equal_conditions(world, names, SETTING, seeds)
      found += sweep_runs.crossed(
        settings, sweep_runs.product({'optimizer.learning_rate': some})
      )
  return found
