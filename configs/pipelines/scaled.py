"""Constants that act in a small world where those of the papers do not.

From the start of *brief* SEED-GRPO, MinPRO, TW-GRPO, Guide-GRPO and EGPO train
12 iterations with their constants and (`_scaled`) with larger ones, beside GRPO
and GHPO, which nothing had judged here.
Command: python -m experiments.pipeline --pipeline=scaled
  --workdir=runs/scaled
Cost: about 13 minutes of a CPU core, of which the start takes eight.
Claims: each is higher on samples with the scaled constants than with its own,
  and than `grpo`; GHPO is higher than `grpo`.
Expected: see experiments/papers/worlds/README.md.
Source: the papers of the methods; the scaled constants are ours.
"""

from experiments.pipelines import brief_stages
from experiments.pipelines.stages import Stage

METHODS = ('seed_grpo', 'minpro', 'tw_grpo', 'guide_grpo', 'egpo')


def get_stages() -> tuple[Stage, ...]:
  """The start, both of every method, GRPO and GHPO."""
  others = (brief_stages.trained(name, name) for name in ('grpo', 'ghpo'))
  pairs = (
    brief_stages.trained(f'{name}{end}', f'{name}{variant}')
    for name in METHODS
    for end, variant in (('', ''), ('_scaled', '@scaled'))
  )
  return (brief_stages.WARM, *others, *pairs)
