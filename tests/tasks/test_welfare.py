"""GTAlign's welfares, by hand."""

import json
import math

import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext
from rl_jax.tasks import welfare
from rl_jax.tasks.base import Example

SUM = Example('2 + 3', '5', 0)
# 0 and 1 pass no test, 2 and 3 the first only, 4 and 5 both.
PAYOFFS = dict(
  zip(
    welfare.STRATEGIES,
    [(1, 1), (0, 0), (1, 1.05), (-1, -1.1), (2, 1), (0, 1)],
    strict=True,
  )
)


def said(answer='So it is 5', thinking='x' * 500, payoffs=PAYOFFS):
  table = {k: {'user': u, 'LLM': l} for k, (u, l) in payoffs.items()}
  return (
    f'<thinking>{thinking}</thinking><payoff>{json.dumps(table)}</payoff>\n'
    f'<analyze>b</analyze> <response>{answer}</response>\n'
  )


def test_welfares_by_hand():
  """Four words of an answer, and all words: the gates at low and high."""
  found = welfare.gtalign(SUM, said())

  def sigmoid(x):
    return 1 / (1 + math.exp(-x))

  words = len(said().split())
  gates = [
    sigmoid((4 - 20) / 200) * sigmoid((500 - 4) / 200),
    sigmoid((words - 500) / 200) * sigmoid((1000 - words) / 200),
  ]
  user = 1e-4 + 0.5 + 0.2 * gates[0] + 0.3 * math.exp(-1)
  model = 1e-4 + 0.2 + 0.2 * 6 / 12 + 0.4 + 0.2 * gates[1]
  assert found == pytest.approx(
    {
      'reward': math.sqrt(user * model),
      'outcome': 1.0,
      'user': user,
      'model': model,
    }
  )
  wrong = welfare.gtalign(SUM, said('So it is 6'))
  assert found['user'] - wrong['user'] == pytest.approx(0.5)
  assert found['model'] - wrong['model'] == pytest.approx(0.4)
  assert wrong['outcome'] == 0


@pytest.mark.parametrize('payoff', [10**400, math.inf, math.nan, 1e300])
def test_payoffs_beyond_the_floats_are_none(payoff):
  payoffs = PAYOFFS | {welfare.STRATEGIES[0]: (payoff, 1)}
  assert welfare.gtalign(SUM, said(payoffs=payoffs))['reward'] == 0.0
  deep = said().replace('{', '[' * 100_000, 1)
  assert welfare.gtalign(SUM, deep)['reward'] == 0.0


def test_gates_by_hand():
  """A half of the other side at low and at high; 500 words are the middle."""
  assert welfare.length_gate(20, 20, 500) == pytest.approx(0.5 * 0.916827)
  assert welfare.length_gate(500, 20, 500) == pytest.approx(0.5 * 0.916827)
  assert welfare.length_gate(260, 20, 500) == pytest.approx(0.768525**2)
  assert welfare.length_gate(10**6, 20, 500) == pytest.approx(0, abs=1e-12)


def test_the_reward_is_the_combination_of_both(toy):
  """CobbDouglas without its own eps."""
  found = welfare.gtalign(SUM, said())
  rewards = {name: np.full(2, found[name]) for name in ('user', 'model')}
  traj = toy.trajectories(np.ones((2, 1)), group_size=2, rewards=rewards)
  piece = shaping.CobbDouglas(components=('user', 'model'), eps=0.0)
  np.testing.assert_allclose(
    piece(CreditContext(traj.reward_B, traj)).value, found['reward'], rtol=1e-6
  )


@pytest.mark.parametrize(
  'text',
  [
    'So it is 5',
    said().replace('<analyze>b</analyze>', ''),
    said().replace('VQ_DA', 'VQ_XX'),
    said().replace('1.05', '"1"'),
    said().replace('1.05', '1' + 400 * '0'),
    said(payoffs={**PAYOFFS, 'VQ_ZZ': (1, 1)}),
    said() + 'more',
  ],
)
def test_other_forms_have_no_welfare(text):
  assert set(welfare.gtalign(SUM, text).values()) == {0.0}
