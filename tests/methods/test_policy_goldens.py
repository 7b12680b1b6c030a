"""Gradients of whole methods on four rows of two tokens, by hand.

One group with rewards 1, 1, 0, 0 unless a case says otherwise: the mean is 1/2
and the sample standard deviation 1 / sqrt(3), so that GRPO's advantages are
+-sqrt(3) / 2. A mean over tokens, or over rows of means, divides by 8 here, a
mean over rows of sums by 4. Every constant of a configuration decides about
one entry at least.
"""

import numpy as np
import pytest

REWARD = np.array([1.0, 1.0, 0.0, 0.0])
A = np.sqrt(3) / 2
SIGN = np.array([[1.0], [1.0], [-1.0], [-1.0]])
RATIO = np.array([[1.25, 1.1], [1.3, 0.7], [2.5, 0.9], [4.0, 0.75]])
ONES = np.ones((4, 2))


def push(toy, name, *, ratio=ONES, reward=REWARD, group_size=4, **fields):
  """-dL/dlogp where pi / pi_old is `ratio` and logp_old is -1."""
  old = np.full(np.shape(ratio), -1.0)
  return toy.push(
    toy.get_method(name),
    old + np.log(ratio),
    group_size=group_size,
    reward_B=reward,
    **{'logp_old_BT': old, 'logp_behaviour_BT': old, **fields},
  )


def check(actual, expected, rtol=2e-5):
  """rtol covers eps = 1e-6 beside a standard deviation, and float32."""
  np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-7)


# Signed weights: the coefficient is A times these over 8. 0 where the clip
# holds; for A < 0 a ratio above 1 is never held but by the dual clip at 3.
CLIPPED = {
  'clip_higher': [[1.25, 1.1], [0, 0.7], [-2.5, -0.9], [-4, 0]],
  'dual_clip_grpo': [[0, 1.1], [0, 0.7], [-2.5, -0.9], [0, 0]],
  # Weights cut to [.8, 1.28].
  'cispo': [[1.25, 1.1], [1.28, 0.8], [-1.28, -0.9], [-1.28, -0.8]],
  # The second token is multiplied by the first: 1.375, .91, 2.25, 3.
  'minpro': [[1.25, 1.28], [1.28, 0.91], [-1.28, -1.28], [-1.28, -1.28]],
}


@pytest.mark.parametrize('name', sorted(CLIPPED))
def test_clip_rules(toy, name):
  """The table above."""
  check(push(toy, name, ratio=RATIO), A * np.array(CLIPPED[name]) / 8)


def test_sapo(toy):
  """4 s (1 - s) r with s = sigmoid(tau (r - 1)), tau 1 or 1.05."""
  tau = np.where(SIGN > 0, 1.0, 1.05)
  s = 1 / (1 + np.exp(-tau * (RATIO - 1)))
  check(push(toy, 'sapo', ratio=RATIO), A * SIGN * 4 * s * (1 - s) * RATIO / 8)


@pytest.mark.parametrize('name, rows', [('gspo', 8), ('luspo', 4)])
def test_sequence_clip(toy, name, rows):
  """Mean log-ratios 3.5e-4 and -2.5e-4 stay, 4.5e-4 and -3.5e-4 are cut."""
  change = 1e-4 * np.array([[5, 2], [7, 2], [-3, -2], [-6, -1]])
  expected = A * np.array([[1.00035] * 2, [0, 0], [-0.99975] * 2, [0, 0]])
  check(push(toy, name, ratio=np.exp(change)), expected / rows)


def test_gmpo(toy):
  """A row's tokens share sqrt(product); a token beyond .4 nats is held there.

  Row 0: sqrt(1.25 1.1) = 1.172604. Row 1: 1.6 > e^.4, so e^.2 = 1.221403.
  Row 2: .6 < e^-.4, so e^-.2 = .818731. Row 3: sqrt(.7) = .836660.
  """
  ratio = [[1.25, 1.1], [1.6, 1], [1, 0.6], [1, 0.7]]
  expected = [
    [1.172604, 1.172604],
    [0, 1.221403],
    [-0.818731, 0],
    [-0.836660, -0.836660],
  ]
  check(push(toy, 'gmpo', ratio=ratio), A * np.array(expected) / 8)


# logp_old = -1 is probability .367879.
# tv: it moves by .147152 at ratios 1.4 and .6, by .154509 at 1.42 and .58.
# kl: .0437 nats at 1.4 and .0439 at .64; .0553 at 1.45 and .0622 at .58.
DPPO = {'dppo_tv': (1.4, 1.42, 0.6, 0.58), 'dppo_kl': (1.4, 1.45, 0.64, 0.58)}


@pytest.mark.parametrize('name', sorted(DPPO))
def test_dppo(toy, name):
  """The limit of .15, and that of .05 nats, lie between the two ratios."""
  up, far_up, down, far_down = DPPO[name]
  ratio = [[up, 1], [far_up, 1], [down, 1], [far_down, 1]]
  expected = A * np.array([[up, 1], [0, 1], [-down, -1], [0, -1]]) / 8
  check(push(toy, name, ratio=ratio), expected)


def test_dro(toy):
  """Centred rewards +-1/2 minus 1 times the log-ratio."""
  check(push(toy, 'dro', ratio=RATIO), (SIGN / 2 - np.log(RATIO)) / 8)


def test_vespo(toy):
  """Product ratios 1.375, .91, 2.25, 3 in w^2 e^(3(1-w)), w^3 e^(2(1-w)):
  .613796, 1.084782, .934999, .494522; sums over rows."""
  weight = np.array([[0.613796], [1.084782], [-0.934999], [-0.494522]])
  check(push(toy, 'vespo', ratio=RATIO), A * weight * ONES / 4)


def test_topr(toy):
  """Rewards +-1; right rows weigh 1, wrong rows min(product, 1): 1 and .4."""
  ratio = [[1.25, 1.1], [0.2, 0.7], [2.5, 0.9], [0.5, 0.8]]
  expected = np.array([[1.0], [1.0], [-1.0], [-0.4]]) * ONES / 8
  check(push(toy, 'topr', ratio=ratio), expected)


def test_nft(toy):
  """p = 1/2 and w = 1 - p. Right: 1/2. Wrong: -1/2 r / max(2 - r, 1):
  2.5 -> 1.25, .9 -> .45 / 1.1, 4 -> 2, .75 -> .375 / 1.25. Over 4 * 1000."""
  expected = [[0.5, 0.5], [0.5, 0.5], [-1.25, -0.409091], [-2, -0.3]]
  check(push(toy, 'nft', ratio=RATIO), np.array(expected) / 4000)


def test_llds(toy):
  """PPO's clip of .2, and .2 nats^-1 on the one token that a good row lost:
  row 1 fell by .0943 in sum. KL: 1e-3 (e^.1 - 1) = 1.05171e-4 everywhere."""
  expected = A * np.array([[0, 1.1], [0, 0.7], [-2.5, -0.9], [-4, 0]])
  expected[1, 1] += 0.2
  ref = np.log(RATIO) - 1 + 0.1
  actual = push(toy, 'llds', ratio=RATIO, logp_ref_BT=ref)
  check(actual, (expected + 1.05171e-4) / 8)


# u = logp_old - logp_behaviour, and the weights that follow from it.
MISMATCH = {
  'tis': (
    [[1.0, -0.2], [0.5, 0], [0, 0], [0.75, 0]],  # e^.75 = 2.117
    [[2, 0.818731], [1.648721, 1], [1, 1], [2, 1]],
  ),
  'tis_sequence': (
    [[0.3, 0.2], [0.5, 0.5], [0, 0], [-0.1, -0.1]],
    [[1.648721] * 2, [2, 2], [1, 1], [0.818731] * 2],
  ),
  'icepop': (
    np.log([[0.48, 0.52], [4.9, 5.1], [1, 1], [0.1, 1]]),
    [[0, 0.52], [4.9, 0], [1, 1], [0, 1]],
  ),
  # Geometric means 2, sqrt(26) = 5.1, sqrt(.24) = .49, sqrt(.27) = .52.
  'seq_mask_tis': (
    np.log([[8, 0.5], [4, 6.5], [0.4, 0.6], [0.45, 0.6]]),
    [[8, 0.5], [0, 0], [0, 0], [0.45, 0.6]],
  ),
  # k3 of row 0 (.01027 + .00936) / 2 = .0098, of row 1 (.01183 + .01071) / 2 =
  # .0113, of row 3 .01873 / 2 = .0094; e^.14 = 1.150274, e^-.14 = .869358.
  'k3_rejection': (
    [[0.14, -0.14], [0.15, -0.15], [0, 0], [0, -0.2]],
    [[1.150274, 0.869358], [0, 0], [1, 1], [1, 0.818731]],
  ),
}


@pytest.mark.parametrize('name', sorted(MISMATCH))
def test_sampler_mismatch(toy, name):
  """On-policy: A times the weight over 8."""
  change, weight = MISMATCH[name]
  drawn = -1.0 - np.array(change)
  check(
    push(toy, name, logp_behaviour_BT=drawn), A * SIGN * np.array(weight) / 8
  )


def test_deepseek_v3p2(toy):
  """Row 3 has the mean (ln 2 + ln 4) / 2 = 1.04 nats and A < 0, so it drops.

  Row 2 has .46 and stays, A is not divided by the deviation. r = .5 of a right
  row, r < .8 of a wrong one are cut or not as PPO does it. The KL's push is
  -1e-3 r (logp - ref) = 1e-4 r where the reference lies .1 nats above.
  """
  ratio = np.array([[1.25, 1.1], [0.5, 0.25], [0.8001, 0.5], [0.5, 0.25]])
  ref = np.log(ratio) - 1 + 0.1
  expected = np.array([[0, 1.1], [0.5, 0.25], [-0.8001, 0], [0, 0]]) / 2
  actual = push(toy, 'deepseek_v3p2', ratio=ratio, logp_ref_BT=ref)
  check(actual, (expected + 1e-4 * ratio) / 8)


def test_the_clip_holds_before_the_mismatch_weight(toy):
  """Ratios 1.3 and 4 with A > 0 and .75 with A < 0 have no gradient, whatever
  the sampler did: [[.., 1.1], [0, .7], [2.5, .9], [4, 0]]."""
  expected = [[0, 1.1], [0, 0.7], [-2.5, -0.9], [-4, 0]]
  for name in MISMATCH:
    check(push(toy, name, ratio=RATIO), A * np.array(expected) / 8)


def test_entropy_quantile(toy):
  """A fifth of 8 tokens is 1: the one of entropy 2, at ratio 1.25 < 1.28."""
  entropy = np.array([[2.0, 1.9], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
  expected = np.zeros((4, 2))
  expected[0, 0] = A * 1.25 / 8
  actual = push(toy, 'entropy_quantile', ratio=RATIO, entropy_BT=entropy)
  check(actual, expected)


def test_lite_ppo(toy):
  """1, 0, 0, 0 and 1, 1, 1, 0 have the sample std sqrt(2 / 7) = .534522: .75
  and .25 over it are 1.403122 and .467707; eight rows of one token."""
  reward = np.array([1.0, 0, 0, 0, 1, 1, 1, 0])
  high, low = 1.403122, 0.467707
  expected = np.array([[high, -low, -low, -low, low, low, low, -high]]).T / 8
  actual = push(toy, 'lite_ppo', ratio=np.ones((8, 1)), reward=reward)
  check(actual, expected)


def test_reinforce_plus_plus(toy):
  """The KL of 10 nats at the first token costs .1: returns .9, 1, 1, 1, 0 ...
  Mean .4875, sum of squares 3.81 - 8 .4875^2 = 1.90875, sample std .522187."""
  ref = np.full((4, 2), -1.0)
  ref[0, 0] = -11.0
  expected = np.full((4, 2), -0.933574)
  expected[:2] = 0.981449
  expected[0, 0] = 0.789947
  check(push(toy, 'reinforce_plus_plus', logp_ref_BT=ref), expected / 8)


SHORT = np.array([[1.0, 1], [1, 0], [1, 0], [1, 0]])  # row 0 is longer


def test_reinforce_plus_plus_baseline(toy):
  """Five tokens with 1/2, 1/2, 1/2, -1/2, -1/2: mean .1, sample variance .3;
  .4 / .547723 = .730297, -.6 / .547723 = -1.095445."""
  expected = np.array([[0.730297], [0.730297], [-1.095445], [-1.095445]])
  actual = push(toy, 'reinforce_plus_plus_baseline', mask_BT=SHORT)
  check(actual, expected * SHORT / 5)


def test_gpg(toy):
  """Two of four rewards are not 0: rewards are doubled, then centred."""
  check(push(toy, 'gpg'), SIGN * ONES / 8)


def test_opo(toy):
  """Lengths 2, 1, 1, 1: the baseline is 3 / 5; sums over rows."""
  expected = np.array([[0.4], [0.4], [-0.6], [-0.6]]) * SHORT / 4
  check(push(toy, 'opo', mask_BT=SHORT), expected)


def test_pass_at_k_grpo(toy):
  """1, 0, 0, 0 has the sample std 1/2: the best row gets 2."""
  actual = push(toy, 'pass_at_k_grpo', reward=np.array([1.0, 0, 0, 0]))
  check(actual, np.array([[2.0], [0], [0], [0]]) * ONES / 8)


@pytest.mark.parametrize('name, soft', [('disco', True), ('disco_b', False)])
def test_disco(toy, name, soft):
  """Right rows share 1. Wrong rows have mean logp -1 and -1 - 10 log 3: with
  tau 10 their shares are 3/4 and 1/4. Two tokens a row.

  The constraint: every token fell by 1/8 nat, 1000 (1/8 - 1e-4) / 8 = 15.6125.
  """
  logp = np.full((4, 2), -1.0)
  logp[3] -= 10 * np.log(3)
  shares = [0.5, 0.5, -0.75, -0.25] if soft else [0.5, 0.5, -0.5, -0.5]
  expected = np.array(shares)[:, None] * ONES / 2
  method = toy.get_method(name)
  fields = dict(group_size=4, reward_B=REWARD)
  check(toy.push(method, logp, **fields), expected)
  actual = toy.push(method, logp, logp_old_BT=logp + 0.125, **fields)
  check(actual, expected + 15.6125)


def test_reg_grpo(toy):
  """At u = 0: 2/4 A / sqrt(.01) = 5 A with A = +-1; KL 1.05171e-4 / 8."""
  actual = push(toy, 'reg_grpo', logp_ref_BT=np.full((4, 2), -0.9))
  check(actual, 5 * SIGN * ONES + 1.05171e-4 / 8)


def test_copg(toy):
  """2 (.1) (R - mean of the others): 1 - 1/3 and 0 - 2/3."""
  check(push(toy, 'copg'), 0.2 * 2 / 3 * SIGN * ONES)


# Row 1 lost .1 for a KL of 1 nat: rewards 1, .9, 0, 0. Row 0 has ratio 1.25,
# beyond the clip. Twelve ordered pairs.
# V1: row 0 is cut; row 1: (.9 - 1) 1.25 + .9 + .9; rows 2, 3: -1.25 - .9.
# V2: all pairs with row 0 are cut; row 1 wins twice by .9.
P3O = {'p3o_v1': [0, 1.675, -2.15, -2.15], 'p3o_v2': [0, 1.8, -0.9, -0.9]}


@pytest.mark.parametrize('name', sorted(P3O))
def test_p3o(toy, name):
  """The sums above over 12."""
  ref = np.full((4, 2), -1.0)
  ref[1] = -1.5
  ratio = np.array([[1.25, 1], [1, 1], [1, 1], [1, 1]])
  actual = push(toy, name, ratio=ratio, logp_ref_BT=ref)
  check(actual, np.array(P3O[name])[:, None] * ONES / 12)


def test_gdc(toy):
  """The reference is e^(1/2) times likelier than the old policy; 4 rows."""
  actual = push(toy, 'gdc', logp_ref_BT=np.full((4, 2), -0.75))
  check(actual, np.array([[1.648721], [1.648721], [0], [0]]) * ONES / 4)


def test_direct_advantage(toy):
  """+-.5 / .01 minus the row's log-ratio, over 4 steps."""
  step = np.log(RATIO).sum(1, keepdims=True)
  actual = push(toy, 'direct_advantage', ratio=RATIO)
  check(actual, (50 * SIGN - step) * ONES / 4)
