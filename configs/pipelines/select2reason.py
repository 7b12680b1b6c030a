"""Select2Reason: the tenth of the rows that is longest and hardest.

The pool has 4,000 rows of 2 to 6 digits; their number stands for the difficulty
that a judge gives in the paper. An untrained model learns for 400 steps from
the best tenth, from a random tenth, and from the whole pool, and is judged on
2 to 6 digits.
Command: python -m experiments.pipeline --pipeline=select2reason
  --workdir=runs/select2reason
Cost: about three minutes of a CPU core.
Claim: a tenth of the rows is not worse than all of them.
Expected: see experiments/papers/worlds/README.md.
Source: "Select2Reason: Efficient Instruction-Tuning Data Selection for Long-CoT
  Reasoning", by reviews. Its judge, tuned from Qwen2.5-Math-7B, and its pool
  OpenR1-Math-220k are not here.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

DIGITS = 'min_digits=2, max_digits=6'
RULES = {
  'joint_rank': ('--rule=joint_rank', '--difficulty=difficulty'),
  'random': ('--rule=random',),
}


def get_stages() -> tuple[Stage, ...]:
  """Two tenths of the rows, and three models."""
  rows = (
    family_stages.selected(f'rows_{name}', *flags, '--keep=0.1')
    for name, flags in RULES.items()
  )
  sources = {name: f'rows_{name}' for name in RULES} | {'whole_pool': 'pool'}
  models = (
    family_stages.on_rows(name, source, 'untrained', 400, DIGITS)
    for name, source in sources.items()
  )
  return (
    family_stages.UNTRAINED,
    family_stages.pool(
      '--set=task.min_digits=2',
      '--set=task.max_digits=6',
      '--set=task.num_train=4000',
    ),
    *rows,
    *models,
  )
