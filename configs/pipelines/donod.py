"""DONOD: rows that change the output layer least, of a pool with wrong answers.

A model learns from 500 right rows. Of a pool of 2,000 rows, 40% of which have a
wrong digit, half are kept: by how a step on a row changes the output layer,
with a growth of its norm as a cost or as a benefit, by the loss, and at random.
The model learns for 200 steps from each half.
Command: python -m experiments.pipeline --pipeline=donod --workdir=runs/donod
Cost: about four minutes of a CPU core.
Claim: fewer of the rows that are kept are wrong than at random, and greedy
  accuracy is higher.
Expected: see experiments/papers/worlds/README.md.
Source: "DONOD: Robust and Generalizable Instruction Fine-Tuning for LLMs via
  Model-Intrinsic Dataset Pruning", by an abstract: reconstructed. The step
  (SGD), its size and equal weights of both columns are ours.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

RULES = {
  'donod': ('--rule=weight_change', '--model={base}'),
  'donod_benefit': (
    *('--rule=weight_change', '--model={base}', '--growth=benefit'),
  ),
  'loss': ('--rule=loss', '--model={base}', '--part=lowest'),
  'random': ('--rule=random',),
}


def get_stages() -> tuple[Stage, ...]:
  """A model for the scores, three halves of the rows, a model of each."""
  rows = (
    family_stages.selected(f'rows_{name}', *flags, '--keep=0.5')
    for name, flags in RULES.items()
  )
  models = (
    family_stages.on_rows(name, f'rows_{name}', 'base', 200) for name in RULES
  )
  return (
    family_stages.UNTRAINED,
    family_stages.pool('--set=task.wrong=0.4'),
    family_stages.own_rows(
      'base', 'untrained', 200, '--set=task=Families(num_train=500, seed=7)'
    ),
    *rows,
    *models,
  )
