"""Digi-Q on recorded episodes of KeyDoor: success by the number of actions N.

A weak policy is cloned from a recorded player half of whose moves are random.
Critics learn by temporal differences from episodes of it on eight grids, at a
rate of 1e-3, then at 2e-4. In states of these grids the policy then draws N
actions, and imitates the one that the critics, now frozen, call best.
Command: python -m experiments.pipeline --pipeline=digi_q --workdir=runs/digi_q
Cost: 3 minutes of a CPU core.
Expected: with one clone and one pair of critics, seeds 0 to 4 of the last
  stage: success in ten turns on the eight grids 0.27 -> 0.626 +- 0.001, 0.624
  +- 0.003, 0.617 +- 0.004 with N = 1, 4, 16 (five of the eight are solved), on
  five held-out grids 0.27 -> 0.37 +- 0.05, 0.40, 0.40. Of the actions that are
  drawn in the last ten iterations 87%, 87% and 76% bring the goal nearer: more
  draws do not help, and the best of 16 (11 [9, 14] points below N = 1) is
  rather one that the critics overrate. Critics and true values of the player
  correlate by 0.99 (V) and 0.92 (Q - V), and in 68% of the states the best
  action has the largest Q; before the second rate by 0.72 and in 53%, and the
  policy then falls below the weak one (0.08 with N = 16, 0.00 with 4 and 1, one
  seed).
Slow critics: targets are of the last weights here. With the slow copies of the
  paper (the default of the method) and another clone, one seed, success is
  0.34, 0.36, 0.19 with N = 1, 4, 16, where targets of the last weights give
  0.50 with N = 1 and 4: in so few iterations the copies lag.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/logged_episodes.py'
_TRAIN = (_CONFIG, '--workdir={out}', '--set=evaluation.every=0')
_CRITICS = (
  *(*_TRAIN, '--method=digi_q', '--set=model.critic=shared'),
  *('--set=method.value_target.gamma=0.8', '--set=update.epochs=2'),
  '--set=method.value_target.decay=null',
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
        *('--set=iterations=60', '--set=rollout.recorded_prompts=0'),
        *('--set=rollout.num_prompts=64', f'--set=rollout.group_size={count}'),
        '--set=rollout.max_response_tokens=2',
        '--set=update.minibatch_prompts=64',
      ),
    ),
    Stage(
      name=f'success_{count}',
      binary='papers.preferences.step_values',
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
