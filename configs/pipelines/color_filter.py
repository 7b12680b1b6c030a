"""CoLoR-Filter: rows on which a little target data lowers a model's loss most.

The pool has 2,000 rows, of which a tenth turn the order of digits (the target)
and four in ten cannot be learned. A model that has learned from the pool is
trained on 50 rows of the target; a quarter of the pool is kept by the fall of
the loss, by the loss after it, and at random, and an untrained model learns for
300 steps from each.
Command: python -m experiments.pipeline --pipeline=color_filter
  --workdir=runs/color_filter
Cost: about five minutes of a CPU core.
Claim: greedy accuracy on the target is higher than with as many random rows.
Expected: see experiments/papers/worlds/README.md.
Source: Brandfonbrener et al., "CoLoR-Filter: Conditional Loss Reduction
  Filtering for Targeted Language Model Pre-training", 2024, by its code
  (color-filter-olmo); models of 151M parameters and 3B tokens there.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

STEPS = 300
RULES = {
  'reduction': (
    '--rule=loss_reduction',
    '--model={prior}',
    '--conditional={conditional}',
  ),
  'conditional_loss': ('--rule=loss', '--model={conditional}', '--part=lowest'),
  'random': ('--rule=random',),
}


def get_stages() -> tuple[Stage, ...]:
  """Two models for the scores, three sets of rows, a model of each."""
  target = "families='r'"
  rows = (
    family_stages.selected(f'rows_{name}', *flags, '--keep=0.25')
    for name, flags in RULES.items()
  )
  models = (
    family_stages.on_rows(name, f'rows_{name}', 'untrained', STEPS, target)
    for name in RULES
  )
  return (
    family_stages.UNTRAINED,
    family_stages.pool("--set=task.families='crsdimxxxx'"),
    family_stages.on_rows('prior', 'pool', 'untrained', STEPS, target),
    family_stages.own_rows(
      'conditional',
      'prior',
      30,
      f'--set=task=Families({target}, num_train=50, seed=7)',
    ),
    *rows,
    *models,
  )
