"""The entropy mechanism on 2-digit arithmetic: GRPO, and what holds entropy up.

Paper: Cui et al., "The Entropy Mechanism of Reinforcement Learning for
  Reasoning Language Models", 2025.

python -m experiments.sft --config=configs/arithmetic_small.py
  --stop_accuracy=0.35 --evaluate_every=20 --out=runs/small_warm
python -m experiments.sweep --paper=entropy_mechanism --jitted
  --workdir=runs/entropy_mechanism
python -m experiments.entropy_report --workdir=runs/entropy_mechanism

Every row generates the same number of responses; groups that agree are kept
(dynamic sampling would draw more). The paper's fractions (2e-4 of the tokens
for Clip-Cov, 2e-3 for KL-Cov) are less than one token of a minibatch of 64
short responses; here 2e-2.
"""

from experiments import sweeps

WARM = 'runs/small_warm'
BASELINE = 'grpo@no_kl'
ROWS = (
  {'method': BASELINE},
  {'method': 'grpo@entropy_bonus', 'method.losses.EntropyBonus.coef': 0.01},
  {'method': 'grpo', 'method.losses.KLPenalty.coef': 0.1},
  {'method': 'clip_higher', 'method.group_filter': 'null'},
  {
    'method': 'clip_cov',
    'method.group_filter': 'null',
    'method.weights.ClipCovDrop.fraction': 0.02,
  },
  {
    'method': 'kl_cov',
    'method.group_filter': 'null',
    'method.losses.KLCov.fraction': 0.02,
  },
)


def get_sweep() -> list[sweeps.Setting]:
  """Six rows, five seeds each."""
  base = {'config': 'arithmetic_small', 'model.path': WARM}
  rows = [base | row for row in ROWS]
  return sweeps.crossed(rows, sweeps.product({'seed': range(5)}))
