"""Links: (win, lose, margin) -> loss, on the scores of one worked example.

S(w) = -10, S(l) = -12, S_ref(w) = -11, S_ref(l) = -11.5: the log-ratios are 1
and -0.5, so with beta 0.1 the scores are 0.1 and -0.05.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.preferences import (
  EXO,
  NCA,
  AnchorSign,
  APODown,
  APOZero,
  BCOPair,
  DiscoPOP,
  Hinge,
  PairTargets,
  Positive,
  Robust,
  Sigmoid,
  SoftTarget,
  Square,
  SquareOfGap,
  Targets,
)

WIN, LOSE = 0.1, -0.05  # beta D
D = 0.15


def value(link, win=WIN, lose=LOSE, margin=0.0):
  """The loss of one edge."""
  arrays = (jnp.full((1, 1), x, jnp.float32) for x in (win, lose, margin))
  return float(link(*arrays)[0, 0])


def slope(link, win=WIN, lose=LOSE, margin=0.0):
  """Its derivatives by both scores."""
  return jax.grad(lambda x, y: link(x, y, margin), argnums=(0, 1))(win, lose)


def log_sigmoid(x):
  return -np.log1p(np.exp(-x))


# Computed by hand or with NumPy from the formulas of the docstrings.
GOLDEN = [
  (Sigmoid(), 0.620957),
  (Sigmoid(label_smoothing=0.1), 0.635957),
  (Sigmoid(label_smoothing=0.2), 0.650957),
  (Robust(flip_rate=0.1), 0.602207),
  (Robust(flip_rate=0.2), 0.570957),
  (Hinge(delta=1.0), 0.85),
  (Square(tau=0.1), (0.15 - 5.0) ** 2),
  (SquareOfGap(), 0.0225),
  (SoftTarget(), -0.5 * log_sigmoid(0.15) - 0.5 * log_sigmoid(-0.15)),
  (
    EXO(),
    1 / (1 + np.exp(-D)) * (log_sigmoid(D) - np.log(0.999))
    + 1 / (1 + np.exp(D)) * (log_sigmoid(-D) - np.log(1e-3)),
  ),
  (NCA(), 0.6443967 + 0.5 * 0.7443967 + 0.5 * 0.6684597),
  (AnchorSign(), 0.620957),
  (BCOPair(), 0.6443967 + 0.6684597),
  (APOZero(), 1 - 0.5249792 + 0.4875026),
  (APODown(), 0.5249792 + 1 - 0.5374298),
  (
    DiscoPOP(),
    # s = sigmoid(0.15 / 0.05) = sigmoid(3)
    0.0474259 * 0.620957 + 0.9525741 * np.exp(-0.15),
  ),
  (Positive(), 0.620957),  # the winner has not fallen
  (Targets(beta=0.1), (0.1 - 5.0) ** 2 + (-0.05 + 5.0) ** 2),
  (PairTargets(beta=0.1), 0.5 * (0.1**2 + 0.05**2)),
]


@pytest.mark.parametrize('link, expected', GOLDEN)
def test_worked_example(link, expected):
  np.testing.assert_allclose(value(link), expected, rtol=2e-6)


@pytest.mark.parametrize(
  'link, win, lose, margin, expected',
  [
    # SimPO with beta 2 and gamma 1: both means are -2, so d = -1.
    (Sigmoid(gamma=1.0), -4.0, -4.0, 0.0, 1.313262),
    (Sigmoid(), 1.0, 0.0, 2.0, 1.313262),  # a margin of the edge does the same
    # IPO on sums and on means, tau 0.1.
    (Square(tau=0.1), 1.0, -0.5, 0.0, 12.25),
    (Square(tau=0.1), 1 / 5, -0.5 / 6, 0.0, 22.246944),
    # SLiC: the gap of the log-likelihoods is 2.
    (Hinge(delta=1.0), -10.0, -12.0, 0.0, 0.0),
    (Hinge(delta=3.0), -10.0, -12.0, 0.0, 1.0),
    # SPPO's hard targets, on log-ratios.
    (Targets(beta=0.1), 1.0, -0.5, 0.0, 36.25),
    # SPPO single: the pair is won with 4/5, so the targets are 3 and -3.
    (PairTargets(beta=0.1), 1.0, -0.5, float(np.log(4.0)), 5.125),
    # Won for sure: half of the hard one's loss.
    (PairTargets(beta=0.1), 1.0, -0.5, 100.0, 18.125),
    # DNO: win rates 0.8 and 0.3.
    (SoftTarget(), 0.1, -0.05, 0.5, 0.677588),
    # DPOP: a winner that has fallen by 0.1 loses 50 times as much.
    (Positive(coef=50.0), -0.1, -0.3, 0.0, float(-log_sigmoid(0.2 - 5.0))),
    (SquareOfGap(), 0.5, 0.25, 1.0, 0.5625),
    # SePPO: the winner has fallen, so both are raised: d = -0.1 + 0.15.
    (AnchorSign(), -0.1, 0.15, 0.0, 0.668460),
  ],
)
def test_other_examples(link, win, lose, margin, expected):
  found = value(link, win, lose, margin)
  np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize(
  'link',
  [Sigmoid(label_smoothing=0.0), Robust(flip_rate=0.0), Positive(coef=0)],
)
def test_reductions_to_dpo(link):
  """E0 in value and slope."""
  for d in (-3.0, 0.0, 2.0):
    assert value(link, d, 0.0) == value(Sigmoid(), d, 0.0)
    assert slope(link, d, 0.0) == slope(Sigmoid(), d, 0.0)


def test_slope_of_dpo():
  """-sigmoid(-d) by the winner's score, the opposite by the loser's."""
  up, down = slope(Sigmoid())
  np.testing.assert_allclose([up, down], [-0.462570, 0.462570], rtol=1e-5)


def test_smoothed_labels_have_a_finite_optimum():
  """d = log((1 - e) / e) = 2.197225 for e = 0.1."""
  up, _ = slope(Sigmoid(label_smoothing=0.1), 2.197225, 0.0)
  np.testing.assert_allclose(up, 0.0, atol=1e-7)
  assert slope(Sigmoid(label_smoothing=0.1), 3.0, 0.0)[0] > 0


def test_ipo_stops_at_its_target():
  """d = 1 / (2 tau); beyond it the gradient changes its sign."""
  assert slope(Square(tau=0.25), 2.0, 0.0)[0] == 0.0
  assert slope(Square(tau=0.25), 3.0, 0.0)[0] > 0


def test_robust_is_unbiased():
  """The mean over flips of rate 0.2 is the loss of the clean label."""
  link = Robust(flip_rate=0.2)
  mean = 0.8 * value(link, 0.7, 0.0) + 0.2 * value(link, 0.0, 0.7)
  np.testing.assert_allclose(mean, 0.403186, rtol=1e-5)


def test_soft_targets_are_fitted():
  """The minimum is where the gap is the logit of the target."""
  assert slope(SoftTarget(), 0.7, 0.2, 0.5)[0] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize('link', [link for link, _ in GOLDEN])
def test_finite_at_large_scores(link):
  """Value and slope, also where exponentials overflow."""
  for win, lose in ((500.0, -500.0), (-500.0, 500.0)):
    assert np.isfinite(value(link, win, lose))
    assert np.isfinite(slope(link, win, lose)).all()


def test_the_sign_of_the_anchor_has_no_gradient():
  """DPO above 0 and at 0; below, both scores rise."""
  for win in (0.0, 2.0):
    assert slope(AnchorSign(), win, 0.5) == slope(Sigmoid(), win, 0.5)
  up, other = slope(AnchorSign(), -1.0, 0.5)
  assert up == other < 0
