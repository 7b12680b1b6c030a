"""Every method on the bandit, after equally many samples.

python -m experiments.sweep --paper=bandit_methods --jitted
  --workdir=runs/bandit_methods
python -m experiments.table --workdir=runs/bandit_methods --comparison
  --baseline=method=reinforce
"""

from experiments import configuration, sweeps

SETTING = {
  'rollout.group_size': 16,
  'optimizer.learning_rate': 5e-3,
  'iterations': 100,
}


def get_sweep() -> list[sweeps.Setting]:
  """All of configs/methods, five seeds each; REINFORCE first."""
  names = configuration.names('configs.methods')
  names.sort(key=lambda name: name != 'reinforce')
  return sweeps.equal_conditions('bandit', names, SETTING, seeds=5)
