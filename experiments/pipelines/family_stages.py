"""Stages that select rows of `configs/worlds/families.py` and train on them."""

from experiments.pipelines.stages import Stage

CONFIG = '--config=configs/worlds/families.py'
# Responses of the data, 64 a step.
RECORDED = (
  *(CONFIG, '--method=sft', '--workdir={out}'),
  *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
  '--set=rollout.group_size=1',
)
RATE = '--set=optimizer.learning_rate=2e-3'
UNTRAINED = Stage(
  name='untrained',
  flags=(
    *(*RECORDED, '--set=optimizer.learning_rate=0.0', '--set=iterations=1'),
    '--set=evaluation.every=0',
  ),
)
# A start that solves about half of the prompts.
WARM = Stage(
  name='warm',
  flags=(
    *(*RECORDED, RATE),
    *('--set=iterations=150', '--set=evaluation.every=150'),
  ),
)


def pool(*sets: str) -> Stage:
  """The pool of rows, of Families with these changes."""
  return Stage(
    name='pool',
    binary='papers.worlds.family_rows',
    flags=(CONFIG, '--out={out}.jsonl', *sets),
  )


def own_rows(name: str, start: str, steps: int, *sets: str) -> Stage:
  """Supervised training from a stage on the targets of Families."""
  return Stage(
    name=name,
    flags=(
      *RECORDED,
      RATE,
      f'--set=model.path={{{start}}}',
      f'--set=iterations={steps}',
      f'--set=evaluation.every={steps}',
      *sets,
    ),
  )


def selected(name: str, *flags: str) -> Stage:
  """Rows of the pool, by flags of experiments.select_rows."""
  return Stage(
    name=name,
    binary='select_rows',
    flags=(
      *('--data={pool}.jsonl', '--out={out}.jsonl', *flags),
      *('--describe=family', '--describe=wrong', '--describe=difficulty'),
    ),
  )


def on_rows(
  name: str, rows: str, start: str, steps: int, judged: str = ''
) -> Stage:
  """Supervised training from a stage on the rows of another one.

  judged: fields of the Families whose validation split is evaluated.
  """
  return Stage(
    name=name,
    flags=(
      *RECORDED,
      RATE,
      f'--set=model.path={{{start}}}',
      f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
      f'--set=iterations={steps}',
      *evaluated(steps, judged),
    ),
  )


def evaluated(steps: int, judged: str = '') -> tuple[str, ...]:
  """An evaluation of prompts of Families after the last step."""
  return (
    f'--set=evaluation.every={steps}',
    '--set=evaluation.split=null',
    "--add=evaluation.sets=EvaluationSet(name='families', "
    f"split='validation', task=Families({judged}))",
  )
