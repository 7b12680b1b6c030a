"""Shows how a small change of the reward moves the best policy, with and
without entropy: a table of the share of the first of two equally good answers.

python -m experiments.papers.worlds.policy_cliff

The first answer gets `eps` more than the second, a third one is worth 0. Rows
are exact gradient ascent of E[r] + coef H from random logits, no samples; in
brackets the limit for many steps, sigmoid(eps / coef) of the two, which without
an entropy bonus jumps at eps = 0 (there it stays where it began).
Cost: 7 CPU seconds.
Expected: for eps -0.01, -0.001, 0, 0.001 and 0.01 the shares are 0.000, 0.002,
0.991, 0.999 and 1.000 without the bonus, 0.269, 0.475, 0.500, 0.525 and 0.731
with coef 0.01.
"""

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.rewards.policy_cliff import ascend, best_policy

_EPS = flags.DEFINE_list(
  'eps', ['-1e-2', '-1e-3', '0', '1e-3', '1e-2'], 'What the first gets more.'
)
_COEF = flags.DEFINE_list('coef', ['0', '1e-3', '1e-2'], 'Entropy bonuses.')
_STEPS = flags.DEFINE_integer('steps', 200_000, 'Of ascent.', lower_bound=1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the first logits.', lower_bound=0)


def _numbers(flag, least):
  try:
    found = np.array(flag.value, float)
  except ValueError:
    found = np.array([np.nan])
  if not (found.size and np.isfinite(found).all() and found.min() >= least):
    raise ValueError(
      f'--{flag.name}={",".join(flag.value)}: expected finite numbers of at '
      f'least {least}, separated by commas'
    )
  return found


def main(argv):
  """Prints the table."""
  del argv
  coefs, gaps = _numbers(_COEF, 0.0), _numbers(_EPS, -np.inf)
  print('| eps | ' + ' | '.join(f'coef {x:g}' for x in coefs) + ' |')
  print('|---' * (1 + len(coefs)) + '|')
  reward_EA = np.stack([1 + gaps, np.ones_like(gaps), np.zeros_like(gaps)], 1)
  logits_A = np.random.default_rng(_SEED.value).normal(size=3)
  columns = []
  for coef in coefs:
    found_EA = ascend(reward_EA, coef, logits_A, _STEPS.value)
    limit_EA = best_policy(reward_EA, coef)
    columns.append(
      [
        f'{p[0] / p[:2].sum():.3f} ({q[0] / q[:2].sum():.3f})'
        for p, q in zip(found_EA, limit_EA, strict=True)
      ]
    )
  for gap, *cells in zip(gaps, *columns, strict=True):
    print(f'| {gap:g} | ' + ' | '.join(cells) + ' |')


if __name__ == '__main__':
  configuration.run(main)
