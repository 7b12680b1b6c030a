"""Every method on the bandit, after equally many samples.

python -m experiments.sweep --paper=bandit_methods --jitted
  --workdir=runs/bandit_methods
python -m experiments.table --workdir=runs/bandit_methods --comparison
  --baseline=method=reinforce
"""

from experiments import configuration, sweeps


def get_sweep() -> list[sweeps.Setting]:
  """All of configs/methods, five seeds each; REINFORCE first."""
  names = configuration.names('configs.methods')
  names.sort(key=lambda name: name != 'reinforce')
  return sweeps.crossed(
    [_setting(name) for name in names], sweeps.product({'seed': range(5)})
  )


def _setting(name: str) -> sweeps.Setting:
  setting = {
    'config': 'bandit',
    'method': name,
    'evaluation.every': 0,
    'checkpoint.every': 10**9,
    'rollout.group_size': 16,
    'optimizer.learning_rate': 5e-3,
    'iterations': 100,
  }
  if 'values' in configuration.load_method(name).needs():
    setting['model.value_head'] = True
  return setting
