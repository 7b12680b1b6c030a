"""Stages on `configs/worlds/family_chains.py`."""

from collections.abc import Sequence

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

NAME = 'configs/worlds/family_chains.py'
CONFIG = (f'--config={NAME}', '--workdir={out}')
# The teacher of the starts: a slip in a fifth of the steps.
FAULTS = ('--set=task.slips=0.2', '--set=task.checks=0.3')
FAULTS += ('--set=task.contradictions=0.1',)
WARM = starts.warm(CONFIG, *FAULTS, steps=300)
_ROWS = 'papers.worlds.chain_rows'


def recorded(
  path: str, samples: int = 1, rows: int = 32, reader: str = 'PreferenceRows'
) -> tuple[str, ...]:
  """Flags for responses of a file only, so many to a prompt."""
  return (
    f"--set=task={reader}(path='{path}')",
    *(
      f'--set=rollout.recorded_prompts={rows}',
      f'--set=rollout.num_prompts={rows}',
    ),
    f'--set=rollout.group_size={samples}',
    '--set=evaluation.every=0',
  )


def logged(name: str, model: str, iterations: int, *flags: str) -> Stage:
  """The stage that logs samples of a model, which does not learn."""
  return Stage(
    name=name,
    flags=(
      *(*CONFIG, '--method=reinforce', f'--set=model.path={{{model}}}'),
      *(f'--set=iterations={iterations}', '--set=evaluation.every=0'),
      *('--set=optimizer.learning_rate=0.0', '--set=guards.log_rollouts=64'),
      *flags,
    ),
  )


def rows(name: str, form: str, workdir: str, *flags: str) -> Stage:
  """Rows of the samples that a stage has logged."""
  source = (f'--workdir={{{workdir}}}', *flags)
  return Stage(
    name=name,
    binary=_ROWS,
    flags=(f'--form={form}', *source, '--out={out}.jsonl'),
  )


def taught(name: str, form: str, flags: Sequence[str]) -> Stage:
  """Rows of what the teacher writes."""
  return Stage(
    name=name,
    binary=_ROWS,
    flags=(
      *(f'--form={form}', f'--config={NAME}', *flags),
      '--out={out}.jsonl',
    ),
  )
