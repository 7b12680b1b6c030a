"""DPO and PPO on the same comparisons: data, algorithm and reward model.

A policy learns from 60 steps of likelihood of better texts. From there it
learns from 300 comparisons that are nearly right or often wrong: by DPO, and by
PPO on reward models of one or three layers that learned the same comparisons.
The gold rule judges samples.
Command: python -m experiments.pipeline --pipeline=paired --workdir=runs/paired
Cost: about five minutes of a CPU core.
Claims: the gold score of samples is higher with better data, with PPO than with
  DPO on the same data, and with the larger reward model.
Expected: see experiments/papers/worlds/README.md.
Source: Ivison et al., "Unpacking DPO and PPO: Disentangling Best Practices for
  Learning from Preference Feedback", 2024; sizes are ours, and prompts are the
  same everywhere.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/proxy.py', '--workdir={out}')
_JUDGED = ('--set=evaluation.num_prompts=100', '--set=evaluation.num_samples=4')
DATA = {'good': 30.0, 'poor': 3.0}  # sharpness of the comparisons
LAYERS = {'small': 1, 'large': 3}


def _on(sharpness: float) -> tuple[Stage, ...]:
  """Both algorithms on the comparisons of this sharpness."""
  (name,) = (name for name, x in DATA.items() if x == sharpness)
  data = f'--set=task.sharpness={sharpness}'
  start = '--set=model.path={likely}'
  dpo = Stage(
    name=f'dpo_{name}',
    flags=(
      *(*_CONFIG, '--method=dpo', data, start, *_JUDGED),
      *('--set=optimizer.learning_rate=3e-4', '--set=evaluation.every=60'),
    ),
  )
  others = []
  for size, layers in LAYERS.items():
    model = f'model_{name}_{size}'
    others.append(
      Stage(
        name=model,
        flags=(
          *(*_CONFIG, '--method=reward_model', data),
          f'--set=model.config.num_layers={layers}',
        ),
      )
    )
    others.append(
      Stage(
        name=f'ppo_{name}_{size}',
        flags=(
          *(*_CONFIG, '--method=ppo', start, *_JUDGED),
          f"--add=reward_models=RewardModel(path='{{{model}}}')",
          *('--set=model.value_head=True', '--set=model.critic=own'),
          *('--set=iterations=60', '--set=evaluation.every=60'),
          '--set=optimizer.learning_rate=3e-4',
        ),
      )
    )
  return (dpo, *others)


def get_stages() -> tuple[Stage, ...]:
  """A start, and the grid."""
  likely = Stage(
    name='likely',
    flags=(
      *(*_CONFIG, '--method=sft', '--set=rollout.group_size=1', *_JUDGED),
      '--set=evaluation.every=60',
    ),
  )
  return (likely, *(stage for x in DATA.values() for stage in _on(x)))
