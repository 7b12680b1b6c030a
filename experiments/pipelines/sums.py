"""Flags that recipes on 2-digit sums share: `configs/worlds/preferences.py`."""

CONFIG = ('--config=configs/worlds/preferences.py', '--workdir={out}')
# Answers of the data only, by likelihood.
WARM = (
  *CONFIG,
  '--method=sft',
  '--set=task.form=right',
  '--set=rollout.group_size=1',
)
# Samples instead of data, and the learning rate for them.
DRAWN = (
  *('--set=rollout.recorded_prompts=0', '--set=rollout.num_prompts=32'),
  *('--set=rollout.group_size=8', '--set=guards.log_rollouts=32'),
)
SAMPLES = (*DRAWN, '--set=optimizer.learning_rate=3e-4')


def on_rows(
  stage: str, split: str = '{task}', weights: str = ''
) -> tuple[str, ...]:
  """The rows that a stage has written; evaluated on sums, as the others are.

  split: a task around {task}. weights: of rewards, where responses are sampled.
  """
  rows = f"PreferenceRows(path='{{{stage}}}.jsonl'{weights})"
  return (
    f'--set=task={split.replace("{task}", rows)}',
    '--set=evaluation.split=null',
    "--add=evaluation.sets=EvaluationSet(name='sums', split='validation', "
    'task=Arithmetic(digits=2, signed=False, reverse=True))',
  )


def rows_of(stage: str, *flags: str) -> tuple[str, ...]:
  """Flags of experiments.rollout_rows for what a stage has logged."""
  return (f'--workdir={{{stage}}}', '--out={out}.jsonl', *flags)
