"""Three rounds of DPO on samples: each begins at, and refers to, the last.

Command: python -m experiments.pipeline --pipeline=iterative_dpo
  --workdir=runs/rounds
Cost: about two minutes on 2 CPU cores.
Source: "RLHF Workflow: From Reward Modeling to Online RLHF", 2024; one update
  of the reference a round. Sizes are ours.
"""

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 3


def get_stages() -> tuple[Stage, ...]:
  """A warm start and ROUNDS trainings with a frozen reference each."""
  config = '--config=configs/worlds/preferences.py'
  warm = Stage(
    name='round_0',
    flags=(
      *(config, '--method=sft', '--workdir={out}'),
      *('--set=task.form=right', '--set=rollout.group_size=1'),
    ),
  )
  trained = Stage(
    name='round',
    flags=(
      *(config, '--method=online_dpo', '--workdir={out}'),
      *('--set=seed={number}', '--set=model.path={round}'),
      *('--set=rollout.recorded_prompts=0', '--set=rollout.num_prompts=32'),
      *('--set=rollout.group_size=8', '--set=iterations=60'),
      '--set=optimizer.learning_rate=3e-4',
    ),
  )
  return unrolled((warm,), (trained,), ROUNDS, {'round': 'round_0'})
