"""Tuned levels of a conformal decision, and the lines of the command."""

import jax
import numpy as np
import pytest

from experiments.papers.abstention import abstention
from experiments.pipelines import level_bandit
from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext
from rl_jax.worlds import Clues


def test_loss_by_hand():
  """Without hidden units: mean (1, 0), std softplus(0) + .001 of both.

  d loss / d bias of the mean = cost (step - mean) / std^2, of sg(-cost).
  """

  def zeros(*shape):
    return np.zeros(shape, np.float32)

  params = {'in': zeros(2, 4), 'in_bias': zeros(4), 'out': zeros(4, 4)}
  params['out_bias'] = np.array([1.0, 0, 0, 0], np.float32)
  mean, std = level_bandit.distribution(params, level_bandit.LOW)
  np.testing.assert_allclose(mean, [1, 0])
  np.testing.assert_allclose(std, np.log(2) + 0.001, rtol=1e-6)
  step, cost = np.array([1.5, -1.0], np.float32), 2.0
  grads = jax.grad(level_bandit.policy_loss)(
    params, level_bandit.LOW, step, cost
  )
  expected = cost * (step - mean) / std**2
  np.testing.assert_allclose(grads['out_bias'][:2], expected, rtol=1e-5)


def test_tuning_stays_in_its_ranges():
  """The levels of the last epoch are returned, with the costs of all."""
  tried = []

  def cost(*levels):
    tried.append(levels)
    return 10 * (levels[0] - 0.8)

  levels, costs = level_bandit.tune(cost, epochs=60, seed=0)
  np.testing.assert_array_equal(levels, tried[-1])
  assert costs == [10 * (alpha - 0.8) for alpha, _ in tried]
  assert (np.array(tried) >= [0.75, 0.01]).all()
  assert (np.array(tried) <= [0.9, 0.05]).all()
  # Steps of .005 standard deviations near 1, from the middle.
  assert 0 < np.abs(np.diff(np.array(tried), axis=0)).max() < 0.03
  assert len(set(tried)) > 50


def test_lines_have_honest_coverage():
  """All rules on draws of a calibrated model, 600 rows each split."""
  rng = np.random.default_rng(0)
  prob_nA = rng.dirichlet(np.ones(4), 1800)
  answer_n = (prob_nA.cumsum(1) < rng.uniform(size=(1800, 1))).sum(1)
  lines = abstention.conformal_lines(prob_nA, answer_n, 0.1, 3, 0)
  found = {line['rule']: line for line in lines}
  assert list(found) == ['lac', 'aps', 'middle', 'tuned', 'surest']
  for rule, level in (('lac', 0.1), ('aps', 0.1), ('middle', 0.03)):
    error = (level * (1 - level) / 300) ** 0.5  # of both splits
    assert found[rule]['covered'] >= 1 - level - 4 * error
  risks = list(found['surest']['risk_at'].values())
  assert risks[0] < risks[-1]
  with pytest.raises(ValueError, match='guarantee nothing at level 0.01'):
    abstention.conformal_lines(prob_nA[:90], answer_n[:90], 0.1, 3, 0)


def test_three_splits_share_no_row():
  """Every row is in one of them."""
  rows = np.arange(30.0)[:, None]
  parts = abstention.thirds(rows, np.arange(30), seed=3)
  found = np.concatenate([answer_n for _, answer_n in parts])
  assert sorted(found) == list(range(30))
  np.testing.assert_array_equal(parts[1][0][:, 0], parts[1][1])


@pytest.mark.parametrize('p', [0.25, 0.5, 0.75])
@pytest.mark.parametrize('u', [0.3, 0.6])
def test_scaling_by_the_group_replaces_u_by_a_half(toy, p, u):
  """Two rows say a letter that is right with probability p, two abstain.

  Centred rewards give the last ones (u - p) / 2 on average; divided by their
  deviation, |1 - u| or u over the root of 3, they give (1 - 2 p) root(3) / 2.
  """
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)

  def advantage(*pieces):
    mean = 0.0
    for chance, outcome in ((p, 1.0), (1 - p, 0.0)):
      credit_B = np.array([outcome, outcome, u, u])
      for piece in pieces:
        credit_B = piece(CreditContext(credit_B, traj)).value
      mean += chance * credit_B[3]
    return mean

  centre, scale = credit.GroupCenter(), credit.GroupScale()
  np.testing.assert_allclose(advantage(centre), (u - p) / 2, atol=1e-6)
  expected = (1 - 2 * p) * 3**0.5 / 2
  np.testing.assert_allclose(advantage(centre, scale), expected, atol=1e-4)


def test_a_policy_that_follows_the_rule_has_the_best_reward():
  """E1: its line, and that of a policy that always answers."""
  u = 0.6
  task = Clues(reward_weights={'outcome': 1.0, 'abstained': u})
  examples = [task.example('test', i) for i in range(50)]
  right_nA = np.array([task.posterior(example) for example in examples])
  none_n = right_nA.max(axis=1) < u
  assert 0 < none_n.mean() < 1
  answer_nA = np.eye(4)[right_nA.argmax(1)]
  optimum = np.column_stack([answer_nA * ~none_n[:, None], none_n])
  found = abstention.abstainer_line(task, examples, optimum.astype(float))
  assert found['reward'] == pytest.approx(found['best_reward'])
  assert found['follows'] == 1.0
  assert found['one'] == pytest.approx(found['best_one'])
  always = np.column_stack([answer_nA, np.zeros(50)])
  worse = abstention.abstainer_line(task, examples, always)
  assert worse['reward'] < found['reward'] and worse['one'] == 1.0
  assert worse['follows'] == pytest.approx(1 - none_n.mean())
