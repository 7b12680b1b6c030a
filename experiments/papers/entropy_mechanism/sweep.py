"""The entropy mechanism: GRPO on two tasks, and methods that keep entropy.

Paper: Cui et al., "The Entropy Mechanism of Reinforcement Learning for
  Reasoning Language Models", 2025.

Warm starts as in configs/worlds/arithmetic_small.py and
configs/countdown_small.py; those named medium with these additional flags:
  --set=model.config.num_layers=3 --set=model.config.width=96
  --set=model.config.head_size=48 --set=model.config.mlp_size=384

python -m experiments.sweep --paper=entropy_mechanism --jitted --by_stages
  --workdir=runs/entropy_mechanism
python -m experiments.papers.entropy_mechanism.report
  --workdir=runs/entropy_mechanism
  --excerpt=experiments/papers/entropy_mechanism/results.jsonl
python -m experiments.table --paper=entropy_mechanism

Every row generates the same number of responses: groups with equal rewards are
kept, as dynamic sampling would draw more. The paper's fractions (2e-4 of the
tokens for Clip-Cov, 2e-3 for KL-Cov) are less than one token of a minibatch of
64 short responses; here 2e-2, and others in a small sweep.
"""

from experiments.sweeps import runs as sweep_runs

BASELINE = 'grpo@no_kl'
PLACES = (
  'arithmetic_small',
  'arithmetic_medium',
  'countdown_small',
  'countdown_medium',
)
COMPARED = ('countdown_small', 'arithmetic_small')  # where all rows run
CLIP_COV = {'method': 'clip_cov', 'method.group_filter': 'null'}
KL_COV = {'method': 'kl_cov', 'method.group_filter': 'null'}
CLIP_FRACTION = 'method.weights.ClipCovDrop.fraction'
KL_FRACTION = 'method.losses.KLCov.fraction'
ROWS = (
  {'method': 'grpo@entropy_bonus', 'method.losses.EntropyBonus.coef': 0.01},
  {'method': 'grpo', 'method.losses.KLPenalty.coef': 0.1},
  {'method': 'clip_higher', 'method.group_filter': 'null'},
  CLIP_COV | {CLIP_FRACTION: 0.02},
  KL_COV | {KL_FRACTION: 0.02},
)
# KL-Cov has no clip: the difference to this row is the effect of its penalty.
UNCLIPPED = KL_COV | {KL_FRACTION: 0.02, 'method.losses.KLCov.coef': 0.0}
OTHER_FRACTIONS = (0.002, 0.1)
COMMON = {
  'iterations': 60,
  'evaluation.every': 4,
  'optimizer.warmup_steps': 20,
}
RATES = {
  'arithmetic_small': 1e-4,
  'arithmetic_medium': 1e-4,
  'countdown_small': 3e-4,
  'countdown_medium': 2e-4,
}


def at(place: str) -> sweep_runs.Setting:
  """The setting of one task and size of model."""
  task = place.split('_')[0]
  path = f'runs/{place}_warm'
  rate = {'optimizer.learning_rate': RATES[place]}
  return {'config': f'{task}_small', 'model.path': path} | COMMON | rate


def get_sweep() -> list[sweep_runs.Setting]:
  """GRPO at all places, other rows at two; five seeds, or three."""
  seeds, few = ({'seed': range(count)} for count in (5, 3))
  baseline = [at(place) | {'method': BASELINE} for place in PLACES]
  rows = [at(place) | row for place in COMPARED for row in ROWS]
  rows.append(at(COMPARED[0]) | UNCLIPPED)
  fractions = [
    at(COMPARED[0]) | row
    for value in OTHER_FRACTIONS
    for row in (
      CLIP_COV | {CLIP_FRACTION: value},
      KL_COV | {KL_FRACTION: value},
    )
  ]
  return sweep_runs.chain(
    sweep_runs.crossed(baseline + rows, sweep_runs.product(seeds)),
    sweep_runs.crossed(fractions, sweep_runs.product(few)),
  )
