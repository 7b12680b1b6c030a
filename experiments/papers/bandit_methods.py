"""A first comparison on the bandit: policy losses and their baselines.

python -m experiments.sweep --paper=bandit_methods --workdir=runs/bandit_methods
"""

from experiments import sweeps

METHODS = ('reinforce', 'rloo', 'grpo', 'dapo', 'cispo', 'gspo', 'kl_cov')


def get_sweep() -> list[sweeps.Setting]:
  """Seven methods, three seeds each."""
  return sweeps.product(
    {
      'config': ['bandit'],
      'method': METHODS,
      'seed': range(3),
      'evaluation.every': [0],
    }
  )
