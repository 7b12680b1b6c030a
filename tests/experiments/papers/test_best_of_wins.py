"""Win rates of the best of n samples."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.papers.preferences.best_of_wins import chances, win_rate
from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def test_chances_by_hand():
  """Among 1, 2, 3, 4 the best of two is 4 in three of six pairs."""
  np.testing.assert_allclose(chances([2, 1, 4, 3], 2), [1 / 6, 0, 3 / 6, 2 / 6])
  np.testing.assert_allclose(
    chances([2, 1, 4, 3], 2, worst=True), [2 / 6, 3 / 6, 0, 1 / 6]
  )
  np.testing.assert_allclose(chances([5, 7], 1), 0.5)
  with pytest.raises(ValueError, match='n = 3, and a prompt has 2 samples'):
    chances([5, 7], 3)


@pytest.mark.parametrize('worst, choose', [(False, max), (True, min)])
def test_win_rates_are_those_of_all_choices(worst, choose):
  """Ties included."""
  own, other = [1, 3, 3, 0], [3, 2, 1]
  for n in (1, 2, 3):
    sides = [
      [choose(x) for x in itertools.combinations(side, n)]
      for side in (own, other)
    ]
    wins = [(a > b) + 0.5 * (a == b) for a in sides[0] for b in sides[1]]
    assert win_rate(own, other, n, worst) == pytest.approx(np.mean(wins))
    assert win_rate(own, own, n, worst) == pytest.approx(0.5)


# exp(t C) and the reward C itself, all at a KL of 0.5 nats from the reference:
# win rates of one sample, of the best and of the worst of four.
TABLE = {
  None: (0.7737, 0.7998, 0.8860),
  5.0: (0.7461, 0.8566, 0.7465),
  10.0: (0.7117, 0.8715, 0.6763),
  -5.0: (0.7539, 0.7230, 0.9439),
  -10.0: (0.7358, 0.6859, 0.9476),
}


def tilted(t):
  """(u, density, distribution) of the policy that maximises E R - beta KL.

  u is a reward that is uniform under the reference; beta by bisection.
  """
  u = np.linspace(0, 1, 20001)
  reward = (
    u
    if t is None
    else np.asarray(shaping.Exponential(t=t)(CreditContext(u, None)).value)
  )
  low, high = 1e-3, 10.0
  for _ in range(60):
    beta = np.sqrt(low * high)
    density = np.exp((reward - reward.max()) / beta)
    density /= np.trapezoid(density, u)
    kl = np.trapezoid(density * np.log(np.maximum(density, 1e-300)), u)
    low, high = (beta, high) if kl > 0.5 else (low, beta)
  steps = (density[1:] + density[:-1]) / 2 * np.diff(u)
  return u, density, np.concatenate([[0.0], np.cumsum(steps)])


@pytest.mark.parametrize('t', TABLE)
def test_each_inference_procedure_has_its_own_reward(t):
  """The tabular solution of InfAlign: the identity is best for one sample, t =
  10 for the best of four, t = -10 for the worst of four."""
  u, density, below = tilted(t)
  found = (
    np.trapezoid(density * u, u),
    np.trapezoid(4 * below**3 * density * u**4, u),
    np.trapezoid(4 * (1 - below) ** 3 * density * (1 - (1 - u) ** 4), u),
  )
  np.testing.assert_allclose(found, TABLE[t], atol=2e-4)
  for place, best in enumerate((None, 10.0, -10.0)):
    assert TABLE[best][place] == max(row[place] for row in TABLE.values())


@pytest.mark.slow
def test_runs_are_compared(tmp_path):
  """By prompts of both; samples that were not judged do not count."""

  def line(step, prompt, reward, error=None):
    return json.dumps(
      {
        **{'step': step, 'prompt': prompt, 'response': 'x'},
        **{'reward': reward, 'error': error},
      }
    )

  logs = {
    'own': [line(1, 'p', 9), line(2, 'p', 1), line(2, 'p', 0), line(2, 'q', 1)],
    'other': [line(2, 'p', 1), line(2, 'p', 1, 'timeout'), line(2, 'p', 0)],
  }
  logs['other'].append(line(2, 'p', 'NaN'))  # waits for its group
  for name, lines in logs.items():
    (tmp_path / name).mkdir()
    (tmp_path / name / 'rollouts.jsonl').write_text('\n'.join(lines) + '\n')
  command = [
    sys.executable,
    '-m',
    'experiments.papers.preferences.best_of_wins',
    '--last=1',
  ]
  command += [f'--workdir={tmp_path}/own', f'--reference={tmp_path}/other']

  def run(*more):
    return subprocess.run([*command, *more], capture_output=True, text=True)

  found = json.loads(run('--n=1,2').stdout)
  assert found == {n: {'win_rate': 0.5, 'prompts': 1} for n in ('1', '2')}
  assert 'no prompt has 3 samples' in run('--n=3').stderr
