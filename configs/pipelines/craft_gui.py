"""CRAFT-GUI: a curriculum or none, and a reward of parts or of the whole.

The policy learns from 150 steps of supervised training on 3, 5 and 7 digits,
then from 60 iterations of GRPO: with prompts in three stages or at random, and
with a reward of 1 for an answer that is right or of half for the share of right
digits and half for the answer.
Command: python -m experiments.pipeline --pipeline=craft_gui
  --workdir=runs/craft_gui
Cost: about three minutes of a CPU core.
Claim: the accuracy of samples is higher with stages than without, with both
  rewards.
Expected: see experiments/papers/worlds/README.md.
Source: "CRAFT-GUI: Curriculum-Reinforced Agent For GUI Tasks", reconstructed.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/family_levels.py', '--workdir={out}')
METHODS = {'staged': 'craft_gui', 'uniform': 'craft_gui@uniform'}
REWARDS = {
  'coarse': (),
  'fine': (
    '--set=task.tasks.{level}.reward_weights='
    "{{{{'outcome': 0.5, 'places': 0.5}}}}",
  ),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and two by two policies."""
  warm = Stage(
    name='warm',
    flags=(
      *(*family_stages.RECORDED, family_stages.RATE),
      '--set=task=Families(min_digits=3, max_digits=7)',
      *('--set=iterations=200', '--set=evaluation.every=200'),
    ),
  )
  trained = (
    Stage(
      name=f'{order}_{reward}',
      flags=(
        *(*_CONFIG, f'--method={method}', '--set=model.path={warm}'),
        *(text.format(level=level) for text in sets for level in range(3)),
      ),
    )
    for order, method in METHODS.items()
    for reward, sets in REWARDS.items()
  )
  return (warm, *trained)
