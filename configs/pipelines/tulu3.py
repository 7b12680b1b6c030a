"""The order of Tulu 3 on 2-digit arithmetic: SFT, DPO, RLVR.

Right answers, pairs of a right and a wrong one, then verified samples; one
small model throughout, of which every stage takes the weights of the last.
Command: python -m experiments.pipeline --pipeline=tulu3 --workdir=runs/tulu3
Cost: about two minutes on 2 CPU cores.
Expected: greedy accuracy 0.17, 0.13 and 0.23 after the stages, with seed 0.
Source: Lambert et al., "Tulu 3: Pushing Frontiers in Open Language Model
  Post-Training", 2024; learning rates and sizes are ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/preferences.py'


def get_stages() -> tuple[Stage, ...]:
  """Three trainings."""
  return (
    Stage(
      name='sft',
      flags=(
        *(_CONFIG, '--method=sft', '--workdir={out}'),
        *('--set=task.form=right', '--set=rollout.group_size=1'),
      ),
    ),
    Stage(
      name='dpo',
      flags=(
        *(_CONFIG, '--method=dpo', '--workdir={out}'),
        *('--set=model.path={sft}', '--set=optimizer.learning_rate=1e-4'),
        '--set=iterations=100',
      ),
    ),
    Stage(
      name='rlvr',
      flags=(
        *(_CONFIG, '--method=rlvr', '--workdir={out}'),
        *('--set=model.path={dpo}', '--set=rollout.logged_prompts=0'),
        *('--set=rollout.num_prompts=32', '--set=rollout.group_size=8'),
        *('--set=optimizer.learning_rate=3e-4', '--set=iterations=200'),
      ),
    ),
  )
