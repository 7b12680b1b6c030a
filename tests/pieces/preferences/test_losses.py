"""Losses on pairs and on labelled rows, by hand on one worked example."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.objective import objective
from rl_jax.method import Method, validate
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.roles import LossContext
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.types import Edges

KEY = jax.random.key(0)
# S = -10 in 5 tokens and -12 in 6; S_ref = -11, -11.5: D = 1 and -0.5.
MASK = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
LOGP = MASK * -2.0
REF = MASK * np.array([[-2.2], [-11.5 / 6]])
LABELS = np.array([1.0, 0.0])
DPO = pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid())


def rows(toy, mask=MASK, ref=REF, group_size=2, edges=True, **fields):
  """Rows of pairs, the first of each group chosen."""
  N = len(mask) // group_size
  traj = toy.trajectories(
    mask, group_size=group_size, logp_ref_BT=ref, **fields
  )
  if not edges:
    return traj
  first = jnp.zeros((N, 1), jnp.int32)
  ones = jnp.ones((N, 1), jnp.float32)
  return traj.replace(
    edges=Edges(
      win_NE=first, lose_NE=first + 1, weight_NE=ones, margin_NE=0 * ones
    )
  )


def value(loss, traj, logp=LOGP, **more):
  """(loss, metrics) as numbers, and the state."""
  stats = {'logp': jnp.asarray(logp, jnp.float32), **more.pop('stats', {})}
  out = loss(LossContext(stats, traj, KEY, **more))
  metrics = {name: float(x) for name, x in out.metrics.items()}
  state = () if out.state is None else (out.state,)
  return (float(out.value), metrics, *state)


def test_dpo_by_hand(toy):
  loss, metrics = value(DPO, rows(toy))
  np.testing.assert_allclose(loss, 0.620957, rtol=1e-5)
  expected = {
    'margin': 0.15,
    'accuracy': 1.0,
    'logp_win': -10.0,
    'logp_lose': -12.0,
    'edges': 1.0,
  }
  for name, number in expected.items():
    assert metrics[f'preference/{name}'] == pytest.approx(number, rel=1e-5)


def test_dpo_gradient_is_the_implied_advantage(toy):
  """dL/dS = -+ beta sigmoid(-beta h) = -+0.046257 on every trained token."""
  traj = rows(toy)
  slope = jax.grad(lambda x: DPO(LossContext({'logp': x}, traj, KEY)).value)(
    jnp.asarray(LOGP)
  )
  expected = MASK * np.array([[-0.046257], [0.046257]])
  np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_at_the_reference(toy):
  """log 2, and ties count as wrong."""
  loss, metrics = value(DPO, rows(toy), logp=REF)
  np.testing.assert_allclose(loss, np.log(2.0), rtol=1e-6)
  assert metrics['preference/accuracy'] == 0.0


def test_weights_multiply_and_counts_divide(toy):
  """Two pairs, one dropped: the mean is over the other; weight 0.5 halves."""
  traj = rows(toy, np.tile(MASK, (2, 1)), np.tile(REF, (2, 1)))
  logp = np.concatenate([LOGP, 3 * LOGP])
  dropped = traj.replace(weight_B=jnp.array([1.0, 1.0, 1.0, 0.0]))
  loss, metrics = value(DPO, dropped, logp)
  np.testing.assert_allclose(loss, 0.620957, rtol=1e-5)
  assert metrics['preference/edges'] == 0.5
  half = dropped.replace(weight_B=jnp.array([0.5, 1.0, 1.0, 0.0]))
  np.testing.assert_allclose(value(DPO, half, logp)[0], loss / 2, rtol=1e-6)


def test_no_edge_is_no_loss(toy):
  """And no NaN in the gradient."""
  traj = rows(toy).replace(weight_B=jnp.zeros(2))
  loss, slope = jax.value_and_grad(
    lambda x: DPO(LossContext({'logp': x}, traj, KEY)).value
  )(jnp.asarray(LOGP))
  assert loss == 0 and (slope == 0).all()


def test_edge_weights(toy):
  """WPO: mean excess of 0.1 a row, -0.2 the other; and the reward gap."""
  wpo = DPO.replace(weight=pref.OnPolicy())
  collision = LOGP + MASK * np.array([[0.3], [0.1]])
  stats = {'collision': jnp.asarray(collision, jnp.float32)}
  loss, metrics = value(wpo, rows(toy), stats=stats)
  np.testing.assert_allclose(loss, 0.620957 * np.exp(-0.4), rtol=1e-5)
  assert metrics['preference/weight'] == pytest.approx(np.exp(-0.4), rel=1e-5)
  # Never above 1.
  stats = {'collision': jnp.asarray(LOGP - MASK, jnp.float32)}
  np.testing.assert_allclose(
    value(wpo, rows(toy), stats=stats)[0], 0.620957, 1e-5
  )
  gap = DPO.replace(weight=pref.RewardGap(power=2.0))
  traj = rows(toy, reward_B=np.array([1.0, 0.5]))
  np.testing.assert_allclose(value(gap, traj)[0], 0.620957 / 4, rtol=1e-5)
  none = DPO.replace(weight=pref.RewardGap(power=0.0))
  np.testing.assert_allclose(value(none, traj)[0], 0.620957, rtol=1e-5)


def test_confidence_by_hand(toy):
  """A gap of ln 3 is 3/4 for sure: |2 p - 1| is 1/2."""
  traj = rows(toy, reward_B=np.array([0.0, np.log(3.0)]))

  def weighted(t):
    return DPO.replace(weight=pref.Confidence(temperature=t))

  def loss(t):
    return value(weighted(t), traj)[0]

  np.testing.assert_allclose(loss(1.0), 0.620957 / 2, rtol=1e-5)
  np.testing.assert_allclose(loss(1e-3), 0.620957, rtol=1e-5)
  # Proportional to the gap where all are guesses.
  wide = rows(toy, reward_B=np.array([0.0, 2 * np.log(3.0)]))
  doubled = value(weighted(1e3), wide)[0] / loss(1e3)
  np.testing.assert_allclose(doubled, 2.0, rtol=1e-4)


def test_importance_by_hand(toy):
  """The weight of both rows is e^(0.5 - 0.6), or by token e^(0.1 - 0.1) = 1."""
  behaviour = LOGP - MASK * np.array([[0.1], [-0.1]])
  traj = rows(toy, logp_behaviour_BT=behaviour)

  def loss(**x):
    return value(DPO.replace(weight=pref.Importance(**x)), traj)[0]

  np.testing.assert_allclose(loss(), 0.620957 * np.exp(-0.1), rtol=1e-5)
  np.testing.assert_allclose(loss(length='mean'), 0.620957, rtol=1e-5)
  np.testing.assert_allclose(loss(limit=0.5), 0.620957 / 2, rtol=1e-5)
  # The policy that sampled.
  traj = rows(toy, logp_behaviour_BT=LOGP)
  np.testing.assert_allclose(loss(), 0.620957, rtol=1e-5)


def test_company_by_hand(toy):
  """ORPO 2.069315; RPO 0.625957 and 1.020957; SLiC with delta 3: 2.0."""
  orpo = pref.PairLoss(score=pref.LogOdds(), link=pref.Sigmoid(), coef=0.1)
  traj = rows(toy)
  nll = value(pref.ChosenLikelihood(), traj)[0]
  np.testing.assert_allclose(value(orpo, traj)[0] + nll, 2.069315, rtol=1e-6)
  dpo = value(DPO, traj)[0]
  rows_sum = pref.ChosenLikelihood(coef=0.0005, average='row_sum')
  np.testing.assert_allclose(dpo + value(rows_sum, traj)[0], 0.625957, 1e-5)
  average = pref.ChosenLikelihood(coef=0.2, average='row_mean')
  np.testing.assert_allclose(dpo + value(average, traj)[0], 1.020957, 1e-5)
  slic = pref.PairLoss(score=pref.SumLogp(beta=1.0), link=pref.Hinge(delta=3.0))
  sft = pref.ChosenLikelihood(coef=0.1, average='row_sum')
  total = value(slic, traj)[0] + value(sft, traj)[0]
  np.testing.assert_allclose(total, 2.0, rtol=1e-5)


def test_averages_of_the_chosen(toy):
  """Chosen rows of 5 and 1 tokens with log-probs -2 and -4 each."""
  mask = np.concatenate([MASK, [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]]])
  logp = mask * np.array([[-2.0], [-2.0], [-4.0], [-1.0]])
  traj = rows(toy, mask, 0 * mask)
  for average, expected in (
    ('token', 14 / 6),
    ('row_sum', 14 / 2),
    ('row_mean', 6 / 2),
  ):
    loss = pref.ChosenLikelihood(average=average)
    np.testing.assert_allclose(value(loss, traj, logp)[0], expected, rtol=1e-6)


def test_the_average_form_of_rpo(toy):
  """E1: eta times the mean over chosen rows of means over their tokens.

  Chosen rows of 5 and 1 tokens with log-probs -2 and -4 each: 0.2 (2 + 4) / 2,
  not 0.2 * 14 / 6, beside DPO with beta 0.5 on the gaps -10 + 12 and -4 + 2.
  """
  mask = np.concatenate([MASK, [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]]])
  logp = mask * np.array([[-2.0], [-2.0], [-4.0], [-1.0]])
  traj = rows(toy, mask, 0 * mask)
  losses = toy.get_method('rpo').losses
  found = sum(value(one, traj, logp)[0] for one in losses)
  dpo = np.log1p(np.exp([-0.5 * 2.0, 0.5 * 2.0])).mean()
  np.testing.assert_allclose(found, dpo + 0.2 * 3.0, rtol=1e-6)


# Three pairs: D_w = (1, 0, 3), D_l = (2, -1, 0), references (0, 0), (4, 1),
# (1, 0) of the summed log-probs, one token a row.
SORTED_LOGP = np.array([[1.0], [2.0], [4.0], [0.0], [4.0], [0.0]])
SORTED_REF = np.array([[0.0], [0.0], [4.0], [1.0], [1.0], [0.0]])


def test_sorted_pairs_by_hand(toy):
  """Gaps of the policy (-1, 4, 4), of the reference (0, 3, 1) by pair; by rank
  d = -1 - 0, 4 - 1, 4 - 3. Unpaired: (0, 1, 3) - (-1, 0, 2) = (1, 1, 1)."""
  traj = rows(toy, np.ones((6, 1)), SORTED_REF)

  def ls(x):
    return -np.log1p(np.exp(-np.asarray(x)))

  paired = value(pref.SortedPairs(beta=1.0), traj, SORTED_LOGP)[0]
  np.testing.assert_allclose(paired, -ls([-1, 3, 1]).mean(), rtol=1e-6)
  unpaired = pref.SortedPairs(beta=1.0, form='unpaired')
  found = value(unpaired, traj, SORTED_LOGP)[0]
  np.testing.assert_allclose(found, -ls([1, 1, 1]).mean(), rtol=1e-6)
  smooth = pref.SortedPairs(beta=1.0, label_smoothing=0.25)
  expected = -0.75 * ls([-1, 3, 1]) - 0.25 * ls([1, -3, -1])
  found = value(smooth, traj, SORTED_LOGP)[0]
  np.testing.assert_allclose(found, expected.mean(), rtol=1e-6)


def test_sorted_pairs_without_some(toy):
  """A dropped pair is in no rank; one pair is DPO."""
  traj = rows(toy, np.ones((6, 1)), SORTED_REF)
  weight = np.array([1.0, 1, 0, 1, 1, 1])
  without = traj.replace(weight_B=jnp.asarray(weight, jnp.float32))

  def ls(x):
    return -np.log1p(np.exp(-np.asarray(x)))

  found = value(pref.SortedPairs(beta=1.0), without, SORTED_LOGP)[0]
  np.testing.assert_allclose(found, -ls([-1 - 0, 4 - 1]).mean(), rtol=1e-6)
  one = value(pref.SortedPairs(), rows(toy))[0]
  np.testing.assert_allclose(one, 0.620957, rtol=1e-5)


def labelled(toy, extra_ratio=0.4, **fields):
  """The worked pair and a row with the response to another prompt."""
  mask = np.concatenate([MASK, [[1, 1, 0, 0, 0, 0]]])
  ref = np.concatenate([REF, [[-1.0 - extra_ratio, -1, 0, 0, 0, 0]]])
  logp = np.concatenate([LOGP, [[-1.0, -1, 0, 0, 0, 0]]])
  live = np.array([1.0, 1.0, 0.0])
  extras = {
    'chosen_B': np.array([1.0, 0.0, -1.0]),
    'mismatched_B': np.array([0.0, 0.0, 1.0]),
  }
  traj = rows(
    toy,
    mask,
    ref,
    group_size=3,
    edges=False,
    extras=extras,
    valid_B=live,
    weight_B=live,
    **fields,
  )
  return traj, logp


def test_kto_by_hand(toy):
  """z0 = 0.2: 0.480011 for the desirable row, 0.482507 for the other."""
  traj, logp = labelled(toy, extra_ratio=0.2)
  loss, metrics = value(pref.KTO(), traj, logp)
  np.testing.assert_allclose(loss, (0.480011 + 0.482507) / 2, rtol=1e-5)
  assert metrics['preference/reference_point'] == pytest.approx(0.2, rel=1e-5)
  weighted = pref.KTO(desirable=2.0, undesirable=0.5)
  expected = (2 * 0.480011 + 0.5 * 0.482507) / 2
  np.testing.assert_allclose(
    value(weighted, traj, logp)[0], expected, rtol=1e-5
  )


@pytest.mark.parametrize(
  'baseline, ratio, z0',
  [
    ('mismatched', 0.2, 0.2),
    ('mismatched', -0.2, 0.0),  # never below 0
    ('batch', 0.2, 0.25),  # of 1 and -0.5
    ('zero', 0.2, 0.0),
  ],
)
def test_reference_points(baseline, ratio, z0, toy):
  traj, logp = labelled(toy, extra_ratio=ratio)
  _, metrics = value(pref.KTO(baseline=baseline), traj, logp)
  assert metrics['preference/reference_point'] == pytest.approx(z0, abs=1e-6)


def test_no_gradient_through_the_reference_point(toy):
  """Rows with another prompt's response are not trained."""
  traj, logp = labelled(toy)
  slope = jax.grad(
    lambda x: pref.KTO()(LossContext({'logp': x}, traj, KEY)).value
  )(jnp.asarray(logp))
  assert (slope[2] == 0).all()
  # At the reference each row has lambda / 2, whatever its label.
  loss, _ = value(pref.KTO(), traj, np.asarray(traj.logp_ref_BT))
  np.testing.assert_allclose(loss, 0.5, rtol=1e-6)


@pytest.mark.parametrize('baseline, z0', [('mismatched', 0.2), ('batch', 0.25)])
def test_the_reference_point_of_kto_is_a_constant(baseline, z0, toy):
  """dL/dD = -+beta s (1 - s) / 2, s = sigmoid(+-beta (D - z0)), on two rows."""
  traj, logp = labelled(toy, extra_ratio=0.2)
  loss = pref.KTO(baseline=baseline)
  slope = jax.grad(lambda x: loss(LossContext({'logp': x}, traj, KEY)).value)(
    jnp.asarray(logp)
  )
  s = 1 / (1 + np.exp([-0.1 * (1 - z0), 0.1 * (-0.5 - z0)]))
  np.testing.assert_allclose(
    slope[:2, 0], [-1, 1] * (0.1 * s * (1 - s) / 2), rtol=1e-5
  )


def test_bco_by_hand(toy):
  """Scores 0.1 and -0.05, mean 0.025; then the mean of all since the start."""
  traj, logp = labelled(toy)
  state = pref.BCO().init(5)
  loss, metrics, state = value(pref.BCO(), traj, logp, state=state)
  expected = np.log1p(np.exp(-0.075))  # both are 0.075 from the mean
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  assert metrics['preference/reference_point'] == pytest.approx(0.025, rel=1e-4)
  assert float(state['count']) == 2.0
  # Log-ratios 0 in the second step: the mean of four scores is 0.0125.
  _, metrics, state = value(
    pref.BCO(), traj, np.asarray(traj.logp_ref_BT), state=state
  )
  assert metrics['preference/reference_point'] == pytest.approx(
    0.0125, rel=1e-4
  )
  assert float(state['count']) == 4.0


def test_win_rates_are_fitted(toy):
  """SPPO: P = 0.8 and 0.3, beta 0.1: ((1 - 3)^2 + (-0.5 + 2)^2) / 2 = 3.125;
  without pairs the mean over rows; P = 1/2 has its minimum at D = 0."""
  advantages = np.array([[0.8], [0.3]]) * MASK
  traj = rows(toy, advantages_BT=advantages)
  loss = value(pref.WinRateRegression(), traj)[0]
  np.testing.assert_allclose(loss, 3.125, rtol=1e-5)
  apart = value(pref.WinRateRegression(), traj.replace(edges=None))[0]
  np.testing.assert_allclose(apart, 3.125 / 2, rtol=1e-5)
  even = rows(toy, advantages_BT=0.5 * MASK)
  assert value(pref.WinRateRegression(), even, logp=REF)[0] == pytest.approx(
    0.0
  )


def test_groups_of_winners(toy):
  """GEPO: winners with D = 1, 2, losers -0.5, 0.5, beta 0.1: 0.870957."""
  mask, ratio = np.ones((4, 1)), np.array([[1.0], [2.0], [-0.5], [0.5]])
  edges = Edges(
    win_NE=jnp.array([[0, 1, 0]]),
    lose_NE=jnp.array([[2, 3, 3]]),
    weight_NE=jnp.ones((1, 3)),
    margin_NE=jnp.zeros((1, 3)),
  )
  traj = rows(toy, mask, 0 * mask, group_size=4).replace(edges=edges)
  loss, metrics = value(pref.GroupContrast(), traj, ratio)
  np.testing.assert_allclose(loss, 0.620957 + 0.25, rtol=1e-5)
  assert metrics['preference/winner_variance'] == pytest.approx(0.25)
  weighted = value(pref.GroupContrast(coef=0.01), traj, ratio)[0]
  np.testing.assert_allclose(weighted, 0.01 * loss, rtol=1e-5)
  # One of each is DPO.
  one = value(pref.GroupContrast(), rows(toy))[0]
  np.testing.assert_allclose(one, 0.620957, rtol=1e-5)


def test_groups_of_data_beside_samples(toy):
  """OORL: a sampled group changes nothing, whatever it holds: E0 the loss of
  the recorded one by itself. Without recorded groups there is no loss.
  """
  mask, ratio = np.ones((4, 1)), np.array([[1.0], [-0.5], [7.0], [3.0]])
  loss = pref.GroupContrast(data_only=True)

  def found(logged, ratio=ratio):
    extras = {'logged_B': np.array(logged)}
    return value(loss, rows(toy, mask, 0 * mask, extras=extras), ratio)[0]

  alone = value(
    pref.GroupContrast(), rows(toy, mask[:2], 0 * mask[:2]), ratio[:2]
  )[0]
  assert found([1.0, 1.0, 0.0, 0.0]) == alone
  assert found([1.0, 1.0, 0.0, 0.0], ratio * [[1], [1], [9], [0]]) == alone
  both = value(pref.GroupContrast(), rows(toy, mask, 0 * mask), ratio)[0]
  assert found([1.0, 1.0, 1.0, 1.0]) == both != alone
  assert found([0.0, 0.0, 0.0, 0.0]) == 0.0
  context = CheckContext(
    method=Method(losses=(loss,), aggregation=TokenMean()),
    rollout=RolloutConfig(recorded_prompts=0),
  )
  with pytest.raises(ValueError, match='data_only = True reads recorded'):
    loss.check(context)


def test_optimism_by_hand(toy):
  """XPO: DPO - 1.2e-4 where the loser is the opponent's; its slope is alpha."""
  extras = {'opponent_B': np.array([0.0, 1.0])}
  traj, bonus = rows(toy, extras=extras), pref.Optimism(coef=1e-5)
  total = value(DPO, traj)[0] + value(bonus, traj)[0]
  np.testing.assert_allclose(total, 0.620837, rtol=1e-6)
  slope = jax.grad(lambda x: bonus(LossContext({'logp': x}, traj, KEY)).value)(
    jnp.asarray(LOGP)
  )
  np.testing.assert_allclose(slope, MASK * [[0.0], [1e-5]], rtol=1e-6)


def test_sampled_kl_by_hand(toy):
  """HyPO: c = (1, 3), baselines (3, 1): (-2 S_1 + 2 S_2) / 2 = S_2 - S_1, so
  the gradient is coef (-1, 1); rows of data take no part."""
  mask, logp = np.ones((4, 1)), jnp.array([[-1.0], [-2.0], [-3.0], [-4.0]])
  ref = np.array([[-2.0], [-5.0], [-9.0], [-9.0]])
  extras = {'logged_B': np.array([0.0, 0.0, 1.0, 1.0])}
  traj = rows(toy, mask, ref, extras=extras)
  term = pref.SampledKL(coef=0.1)
  loss, metrics = value(term, traj, logp)
  assert loss == pytest.approx(0.1 * (-2.0 + 1.0))
  assert metrics['policy/kl_sampled'] == pytest.approx(2.0)
  slope = jax.grad(lambda x: term(LossContext({'logp': x}, traj, KEY)).value)(
    logp
  )
  np.testing.assert_allclose(slope.ravel(), [-0.1, 0.1, 0, 0], rtol=1e-6)
  # At the reference there is no gradient.
  slope = jax.grad(lambda x: term(LossContext({'logp': x}, traj, KEY)).value)(
    jnp.asarray(ref)
  )
  assert (slope == 0).all()


def test_sampled_kl_is_unbiased():
  """Three arms: the expected gradient is that of KL(pi || ref)."""
  logits = np.array([0.3, -0.2, 0.1])
  p = np.exp(logits) / np.exp(logits).sum()
  ref = np.array([0.2, 0.5, 0.3])
  cost = np.log(p / ref)
  exact = p * (cost - (p * cost).sum())
  np.testing.assert_allclose(exact, [0.2303, -0.2145, -0.0158], atol=1e-4)
  expected = np.zeros(3)
  for i in range(3):
    for j in range(3):
      scores = np.eye(3)[i] - p, np.eye(3)[j] - p
      gap = cost[i] - cost[j]
      expected += p[i] * p[j] * (gap * scores[0] - gap * scores[1]) / 2
  np.testing.assert_allclose(expected, exact, rtol=1e-10)


def test_microbatches_of_groups_are_said_to_be_exact():
  """A loss that compares over the batch must not say per_group."""
  for loss in (pref.SortedPairs(), pref.KTO(), pref.BCO()):
    assert not getattr(loss, 'per_group', False)
  assert DPO.per_group


def test_parts_of_a_pair_loss_are_checked():
  """At start, with the field's name."""
  wrong = [
    (DPO.replace(score=pref.Sigmoid()), 'PairLoss.score holds Sigmoid'),
    (DPO.replace(link=pref.LogRatio()), 'PairLoss.link holds LogRatio'),
    (DPO.replace(weight=3.0), 'PairLoss.weight holds float'),
  ]
  for loss, message in wrong:
    method = Method(
      losses=(loss,), aggregation=TokenMean(), pairs=pref.BestWorst()
    )
    with pytest.raises(ValueError, match=message):
      validate(method, group_size=2, has_value_head=False)
  method = Method(losses=(DPO,), aggregation=TokenMean())
  with pytest.raises(ValueError, match='set method.pairs'):
    validate(method, group_size=2, has_value_head=False)


def test_a_method_adds_its_company(toy):
  """The objective is the sum of both terms."""
  method = Method(
    losses=(DPO, pref.ChosenLikelihood(coef=0.5)),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
  stats = {'logp': jnp.asarray(LOGP, jnp.float32)}
  loss, _ = objective(method, stats, rows(toy), KEY)
  np.testing.assert_allclose(loss, 0.620957 + 0.5 * 2.0, rtol=1e-5)


def test_stronger_preferences_have_larger_gaps(toy):
  """MAPL: gaps h = (1.5, 0.5, 2) with strengths (1, 1/4, 1/4), beta 1. Of the
  ordered pairs one is right: -ls(1.5 - 0.5), -ls(1.5 - 2); equal strengths are
  not compared."""
  mask, ref = np.ones((6, 1)), np.zeros((6, 1))
  logp = np.array([[1.0], [-0.5], [0.5], [0.0], [2.0], [0.0]])
  reward = np.array([1.0, 0.0, 0.75, 0.5, 0.25, 0.0])
  traj = rows(toy, mask, ref, reward_B=reward)
  term = pref.StrengthOrder(score=pref.LogRatio(beta=1.0), coef=2.0)
  loss, metrics = value(term, traj, logp)
  expected = np.log1p(np.exp([-1.0, 0.5])).mean()
  np.testing.assert_allclose(loss, 2.0 * expected, rtol=1e-6)
  assert metrics['preference/strength_accuracy'] == 0.5
  # E1: a number added to both scores of a prompt.
  moved = logp + np.array([[3.0], [3.0], [0.0], [0.0], [-1.0], [-1.0]])
  np.testing.assert_allclose(value(term, traj, moved)[0], loss, rtol=1e-6)
  # A dropped pair is compared with none.
  alone = traj.replace(weight_B=jnp.array([1.0, 1.0, 1.0, 1.0, 0.0, 1.0]))
  expected = 2.0 * np.log1p(np.exp(-1.0))
  np.testing.assert_allclose(value(term, alone, logp)[0], expected, rtol=1e-6)
  method = Method(losses=(DPO, term), aggregation=TokenMean())
  with pytest.raises(ValueError, match='StrengthOrder compares pairs'):
    term.check(CheckContext(method=method))


@pytest.mark.parametrize(
  'divergence, phi, slope',
  [
    ('linear', 1.0, 1.0),
    ('chi2', 0.75, 0.5),
    ('hellinger', 0.5, 0.25),
    ('js', 0.489880, 0.225400),
  ],
)
def test_implicit_rewards_are_fitted(divergence, phi, slope, toy):
  """At r = beta D = 1; all have slope 1 at the reference."""
  mask = np.ones((1, 2))
  traj = rows(toy, mask, 0 * mask, group_size=1, edges=False)
  loss = pref.ImplicitRewardFit(beta=0.5, divergence=divergence)
  call = jax.value_and_grad(
    lambda x: loss(LossContext({'logp': x}, traj, KEY)).value
  )
  found, grad = call(jnp.ones((1, 2)))
  np.testing.assert_allclose(found, -phi, rtol=1e-5)
  np.testing.assert_allclose(grad, -0.5 * slope * mask, rtol=1e-5)
  np.testing.assert_allclose(call(0 * jnp.ones((1, 2)))[1], -0.5 * mask)
  # Far below the reference: finite, and the slope of r = -1/2 at least.
  found, grad = call(jnp.full((1, 2), -100.0))
  assert np.isfinite(found) and (grad <= -0.5).all()


def test_linear_fit_is_supervised_training(toy):
  """E1: the gradient is that of the sums of chosen rows, times beta."""
  linear = pref.ImplicitRewardFit(beta=0.1, divergence='linear')
  sft = pref.ChosenLikelihood(coef=0.1, average='row_sum')
  traj = rows(toy).replace(weight_B=jnp.array([1.0, 0.0]))
  slope = jax.grad(lambda x: linear(LossContext({'logp': x}, traj, KEY)).value)
  plain = jax.grad(
    lambda x: sft(LossContext({'logp': x}, rows(toy), KEY)).value
  )
  at = jnp.asarray(LOGP)
  np.testing.assert_allclose(slope(at), plain(at), rtol=1e-6)
