"""Digi-Q on recorded episodes of KeyDoor: success by the number of actions N.

A weak policy is cloned from a recorded player half of whose moves are random.
Critics learn by temporal differences from episodes of it on eight grids, at a
rate of 1e-3, then at 2e-4. In states of these grids the policy then draws N
actions, and imitates the one that the critics, now frozen, call best.
Command: python -m experiments.pipeline --pipeline=digi_q --workdir=runs/digi_q
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/logged_episodes.py'
_TRAIN = (_CONFIG, '--workdir={out}', '--set=evaluation.every=0')
_CRITICS = (
  *(*_TRAIN, '--method=digi_q', '--set=model.critic=shared'),
  *('--set=method.value_target.gamma=0.8', '--set=update.epochs=2'),
)


def _policy(count: int) -> tuple[Stage, Stage]:
  """Imitation of the best of so many actions, and what it prints."""
  name = f'policy_{count}'
  return (
    Stage(
      name=name,
      flags=(
        *(*_TRAIN, '--method=digi_q', '--set=method.losses.TwinCritics=null'),
        '--set=method.value_target=null',
        '--set=method.credit.BestAdvantage.threshold=0.02',
        *('--set=model.path={weak}', '--set=model.value_from={critics}'),
        *('--set=iterations=60', '--set=rollout.logged_prompts=0'),
        *('--set=rollout.num_prompts=64', f'--set=rollout.group_size={count}'),
        '--set=rollout.max_response_tokens=2',
        '--set=update.minibatch_prompts=64',
      ),
    ),
    Stage(
      name=f'success_{count}',
      binary='step_values',
      flags=(_CONFIG, f'--policy={{{name}}}', '--out={out}.jsonl'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Stages `success` are there for what they print."""
  return (
    Stage(
      name='weak',
      flags=(
        *(*_TRAIN, '--method=sft', '--set=iterations=200'),
        *(
          '--set=task.turns=4',
          '--set=task.cut=0.0',
          '--set=task.num_grids=3000',
        ),
      ),
    ),
    Stage(
      name='fast',
      flags=(*(*_CRITICS, '--set=model.path={weak}', '--set=iterations=300'),),
    ),
    Stage(
      name='critics',
      flags=(
        *(*_CRITICS, '--set=model.path={fast}', '--set=iterations=150'),
        '--set=optimizer.learning_rate=2e-4',
      ),
    ),
    *_policy(1),
    *_policy(4),
    *_policy(16),
  )
