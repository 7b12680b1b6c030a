"""CRAFT-GUI: a curriculum or none, and a reward of parts or of the whole.

The policy learns from 200 steps of supervised training on 3, 5 and 7 digits,
then from 60 iterations of GRPO: with prompts in three stages or at random, and
with a reward of 1 for an answer that is right or of half for the share of right
digits and half for the answer. Three more begin with a start that has seen
questions, too, which come in the last stage: a model that has learned 300 steps
from labels, a tenth of them wrong, judges the answers (`judged`); a rule knows
them (`ruled`); or they have no reward (`unjudged`).
Command: python -m experiments.pipeline --pipeline=craft_gui
  --workdir=runs/craft_gui
Cost: about six minutes of a CPU core.
Claims: the accuracy of samples is higher with stages than without, with both
  rewards; more samples answer questions right with `judged` than with
  `unjudged`, and at most 5 points fewer than with `ruled`; and of actions at
  most a point fewer are right with `judged` than with `unjudged`.
Expected: see experiments/papers/worlds/README.md.
Source: "CRAFT-GUI: Curriculum-Reinforced Agent For GUI Tasks", reconstructed.
"""

import dataclasses

from experiments.pipelines import family_stages, starts
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
_FOUR = ('--config=configs/worlds/understood_levels.py', '--workdir={out}')
_NO_JUDGE = '--set=judges=()'
JUDGES = {
  'judged': ("--set=judges.0.path='{judge}'",),
  'ruled': (_NO_JUDGE, '--set=task.tasks.3.verified=True'),
  'unjudged': (_NO_JUDGE,),
}


def _understood() -> tuple[Stage, ...]:
  """A start and a judge of questions, and policies with it and without."""
  start = starts.warm(_FOUR, _NO_JUDGE, steps=200)
  judge = starts.warm(
    _FOUR,
    _NO_JUDGE,
    '--set=task=AnsweredFamilies(errors=0.1)',
    '--set=evaluation.sets=()',
    "--set=evaluation.split='validation'",
    steps=300,
  )
  return (
    dataclasses.replace(start, name='warm_four'),
    dataclasses.replace(judge, name='judge'),
    *(
      Stage(
        name=name,
        flags=(
          *(*_FOUR, '--method=craft_gui@understood'),
          *('--set=model.path={warm_four}', *judged),
        ),
      )
      for name, judged in JUDGES.items()
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, two by two policies, and three that answer questions."""
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
  return (warm, *trained, *_understood())
