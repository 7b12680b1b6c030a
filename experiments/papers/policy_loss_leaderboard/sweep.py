"""Every method on 2-digit arithmetic, each with the best of three rates.

python -m experiments.sft --config=configs/arithmetic_tiny.py
  --stop_accuracy=0.5 --evaluate_every=50 --learning_rate=2e-3
  --max_prompt_tokens=6 --max_response_tokens=5 --out=runs/tiny_warm
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=policy_loss_leaderboard --jitted
  --by_stages --workdir=runs/leaderboard
python -m experiments.sweeps.reference_rows --paper=policy_loss_leaderboard
  --workdir=runs/leaderboard
python -m experiments.table --workdir=runs/leaderboard --leaderboard=20000
  --baseline=grpo
  --excerpt=experiments/papers/policy_loss_leaderboard/results.jsonl
python -m experiments.table --paper=policy_loss_leaderboard

A method's learning rate is one of three, chosen on other seeds: see
experiments/tables/leaderboard.py.
"""

from experiments.sweeps import runs as sweep_runs

CONFIG = 'arithmetic_tiny'
BASELINE = 'grpo'
TOKENS = 20_000  # all are compared after this many
RATES = (3e-5, 1e-4, 3e-4)
SEEDS = 5
SETTING = {'model.path': 'runs/tiny_warm', 'evaluation.every': 10}
# Defaults that do not fit 16 prompts without thoughts and modes.
CHANGES = {
  'a2fm': {'method.rollout': None},
  'degrpo': {'method.shaping.ModeRewards': None},
  'egpo': {'method.credit.EntropyShaping.span': 'response'},
  'riskpo': {'method.credit.BundleRisk.bundle': 4},
}
NOT_RUN = {
  'guide_grpo': 'arithmetic writes no hints',
  'subpo': 'arithmetic has no set function of the tokens',
}


def get_sweep() -> list[sweep_runs.Setting]:
  """All methods that sample but NOT_RUN, with all rates; GRPO first."""
  names = sweep_runs.sampling_methods()
  names = [name for name in names if name not in NOT_RUN]
  names.sort(key=lambda name: name != 'grpo')
  settings = sweep_runs.equal_conditions(CONFIG, names, SETTING, SEEDS)
  settings = sweep_runs.crossed(
    settings, sweep_runs.product({'optimizer.learning_rate': RATES})
  )
  return [
    {**setting, **CHANGES.get(setting['method'], {})} for setting in settings
  ]
