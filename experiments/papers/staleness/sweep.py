"""GRPO with and without a correction, sampled by weights of iterations before.

XLA_FLAGS=--xla_backend_optimization_level=0
  python -m experiments.sweep --paper=staleness --jitted
  --workdir=runs/staleness
python -m experiments.table --workdir=runs/staleness
  --excerpt=experiments/papers/staleness/results.jsonl
python -m experiments.table --paper=staleness --update
"""

from experiments.sweeps import runs as sweep_runs

STALENESS, RATE = 'rollout.staleness', 'optimizer.learning_rate'
BEHIND = (0, 1, 2, 4)  # iterations
RATES = (2e-3, 8e-3)
METHODS = ('grpo@token_mean', 'tis')
SETTING = {
  'rollout.group_size': 16,
  'iterations': 80,
  'update.minibatch_prompts': 2,  # four optimizer steps a rollout
  'guards.max_logp_gap': None,
}
SEEDS = 3


def get_sweep() -> list[sweep_runs.Setting]:
  """Methods x staleness x rates x seeds on the bandit."""
  settings = sweep_runs.equal_conditions('bandit', METHODS, SETTING, SEEDS)
  return sweep_runs.crossed(
    settings, sweep_runs.product({STALENESS: BEHIND, RATE: RATES})
  )
