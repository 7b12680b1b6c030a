"""Losses, weights and aggregation combine into one scalar."""

from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.objective import is_per_token, objective
from rl_jax.method import Method
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenSum, TokenMean, TurnMean
from rl_jax.pieces.roles import Loss, LossContext, LossOut, Weight

KEY = jax.random.key(0)
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.float32)
ADV = np.array([[1.0, 2.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
MINUS_ONE = {'logp': -jnp.ones((2, 4))}  # Reinforce: the loss equals A


@struct.dataclass(kw_only=True)
class Half(Weight):
  """Weight 1/2, as a function of the policy that must carry no gradient."""

  per_token = True

  def __call__(self, ctx):
    """Weights [B, T]."""
    logp_BT = ctx.stats['logp']
    return LossOut(-0.5 * logp_BT * ctx.traj.mask_BT, {'policy/half': logp_BT})


@struct.dataclass(kw_only=True)
class Draw(Loss):
  """A scalar loss that is a random number."""

  aggregation: Any = None

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    return LossOut(jax.random.uniform(ctx.key), {})


def record(toy, **fields):
  """Two rows of 3 and 1 tokens."""
  fields = {'advantages_BT': ADV, 'logp_old_BT': -MASK, **fields}
  return toy.trajectories(MASK, group_size=2, **fields)


def method(*pieces, weights=(), aggregation=None):
  """A method of the given losses."""
  return Method(
    losses=pieces, weights=weights, aggregation=aggregation or TokenMean()
  )


def test_the_record_of_turns_reaches_a_mean_over_turns(toy):
  """Turns (1, 2), 3 and 4: (1.5 + 3 + 4) / 3; without a record (2 + 4) / 2."""
  one = method(losses.Reinforce(), aggregation=TurnMean())
  turn = np.array([[0, 0, 1, -1], [0, -1, -1, -1]])
  value, _ = objective(one, MINUS_ONE, record(toy, turn_BT=turn), KEY)
  np.testing.assert_allclose(value, 8.5 / 3, rtol=1e-6)
  value, _ = objective(one, MINUS_ONE, record(toy), KEY)
  np.testing.assert_allclose(value, 3.0, rtol=1e-6)


def test_a_loss_may_override_the_aggregation(toy):
  """Token mean 2.5; mean over rows of sums 5; their sum 7.5."""
  both = method(
    losses.Reinforce(), losses.Reinforce(aggregation=SeqMeanTokenSum())
  )
  loss, metrics = objective(both, MINUS_ONE, record(toy), KEY)
  np.testing.assert_allclose(loss, 7.5, rtol=1e-6)
  np.testing.assert_allclose(metrics['train/loss'], 7.5, rtol=1e-6)


def test_weights_act_on_policy_losses_only(toy):
  """Two halves quarter the policy loss, not the entropy term (-1), and the
  denominator keeps all tokens: 2.5 / 4 - 1."""
  stats = {**MINUS_ONE, 'entropy': jnp.ones((2, 4))}
  pieces = method(
    losses.Reinforce(),
    regularizers.EntropyBonus(coef=1.0),
    weights=(Half(), Half()),
  )
  loss, metrics = objective(pieces, stats, record(toy), KEY)
  np.testing.assert_allclose(loss, 0.625 - 1.0, rtol=1e-6)
  assert metrics['policy/half'] == -1.0


def test_weights_carry_no_gradient(toy):
  """-dL/dlogp is half of A / 4, although the weight depends on logp."""

  def scalar(stats):
    return objective(
      method(losses.Reinforce(), weights=(Half(),)), stats, record(toy), KEY
    )[0]

  gradient = jax.grad(scalar)(MINUS_ONE)['logp']
  np.testing.assert_allclose(-gradient, ADV / 8, rtol=1e-6)


def test_scalar_losses_are_added_and_pieces_have_their_own_key(toy):
  """Two identical random scalars differ, and the sum is theirs."""
  one = objective(method(Draw()), MINUS_ONE, record(toy), KEY)[0]
  two = objective(method(Draw(), Draw()), MINUS_ONE, record(toy), KEY)[0]
  assert 0 < one < 1
  assert two != 2 * one and 0 < two - one < 1


def test_a_loss_of_tokens_that_returns_one_number_is_refused(toy):
  """Mask and aggregation would not reach it."""
  whole = type('Whole', (Draw,), {'per_token': True})()
  text = r'method.losses.0.Whole has per_token = True, but returns one number'
  with pytest.raises(ValueError, match=text):
    objective(method(whole), MINUS_ONE, record(toy), KEY)


def test_metrics_average_over_trained_tokens(toy):
  """Entropies 1, 2, 3 of the row with weight; the maximum is a maximum."""
  traj = record(toy, weight_B=np.array([1.0, 0.0]))
  stats = {
    'logp': jnp.asarray(np.log([[2.0, 1.0, 1.0, 9.0], [9.0] * 4]) - 1.0),
    'entropy': jnp.array([[1.0, 2.0, 3.0, 9.0], [9.0] * 4]),
  }
  _, metrics = objective(method(losses.PPOClip()), stats, traj, KEY)
  np.testing.assert_allclose(metrics['policy/entropy'], 2.0, rtol=1e-6)
  np.testing.assert_allclose(metrics['policy/ratio_max'], 2.0, rtol=1e-5)
  np.testing.assert_allclose(metrics['policy/clip_fraction'], 1 / 3, rtol=1e-6)
  # A - 2 = -1, 0, 1 times logp: (-ln 2 + 0 + 0) / 3.
  np.testing.assert_allclose(metrics['policy/covariance'], -0.231049, rtol=1e-5)
  # k3 of the ratio: (2 - 1 - ln 2) / 3.
  np.testing.assert_allclose(metrics['policy/kl_old'], 0.102284, rtol=1e-4)


def test_a_method_is_per_token_if_all_of_its_pieces_are():
  assert is_per_token(method(losses.PPOClip()))
  assert not is_per_token(method(losses.PPOClip(), losses.KLCov()))
