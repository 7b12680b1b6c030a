"""Supervised starts: a policy that has learned responses of the data."""

from collections.abc import Sequence

from experiments.pipelines.stages import Stage


def warm(
  config: Sequence[str], *flags: str, steps: int, rows: int = 64
) -> Stage:
  """The stage `warm`: steps of supervised training, `rows` responses each.

  config: flags that name the configuration and the folder. flags: further ones.
  """
  return Stage(
    name='warm',
    flags=(
      *(*config, '--method=sft', *flags),
      f'--set=rollout.recorded_prompts={rows}',
      f'--set=rollout.num_prompts={rows}',
      *('--set=rollout.group_size=1', '--set=optimizer.learning_rate=2e-3'),
      *(f'--set=iterations={steps}', f'--set=evaluation.every={steps}'),
    ),
  )
