"""NLPO's mask by hand, and that sampler and trainer apply the same one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.learning import statistics
from rl_jax.method import Method, validate
from rl_jax.pieces.logits.lagged_support import LaggedSupport
from rl_jax.pieces.logits.transforms import MinP
from rl_jax.pieces.policies import CopyEvery
from rl_jax.pieces.roles import LogitContext

LAGGED = jnp.log(jnp.array([[0.3, 0.5, 0.05, 0.15]]))
LOGITS = jnp.array([[0.0, 1.0, 2.0, 3.0]])


def allowed(**fields):
  """Tokens that keep a probability."""
  found = LaggedSupport(**{'min_tokens': 1, **fields})(
    LogitContext(LOGITS, {'lagged': LAGGED})
  )
  return np.flatnonzero(np.isfinite(found[0])).tolist()


@pytest.mark.parametrize(
  'fields, expected',
  [
    ({'p': 0.4}, [1]),
    ({'p': 0.6}, [0, 1]),  # .5 is not enough: the next one, too
    ({'p': 0.85}, [0, 1, 3]),
    ({'p': 1.0}, [0, 1, 2, 3]),
    ({'p': 0.4, 'min_tokens': 2}, [0, 1]),
    ({'p': 0.4, 'always': (2,)}, [1, 2]),
    # Of four tokens 50% are two, 51% three; never more than min_tokens.
    ({'p': 0.4, 'min_tokens': 100, 'min_percent': 50}, [0, 1]),
    ({'p': 0.4, 'min_tokens': 100, 'min_percent': 51}, [0, 1, 3]),
    ({'p': 0.4, 'min_tokens': 2, 'min_percent': 100}, [0, 1]),
  ],
)
def test_the_support_by_hand(fields, expected):
  """Probabilities .3, .5, .05, .15 of the copy decide, not those of pi."""
  assert allowed(**fields) == expected


def test_special_tokens_are_kept():
  """Besides those of `always`; other transforms stay as they are."""
  own, other = LaggedSupport(p=0.4, min_tokens=1, always=(3,)), MinP()
  method = Method(logits=(other, own)).with_special_ids((0, 3))
  assert method.logits == (other, own.replace(always=(0, 3)))
  found = method.logits[1](LogitContext(LOGITS, {'lagged': LAGGED}))
  assert np.flatnonzero(np.isfinite(found[0])).tolist() == [0, 1, 3]


def test_the_rest_is_renormalised():
  """Tokens 0 and 1 of logits 0, 1: log-probs of a softmax over the two."""
  found = LaggedSupport(p=0.6, min_tokens=1)(
    LogitContext(LOGITS, {'lagged': LAGGED})
  )
  logp = jax.nn.log_softmax(found[0])[:2]
  np.testing.assert_allclose(logp, [-1.313262, -0.313262], rtol=1e-5)


def test_without_a_copy_nothing_is_masked():
  """E0: evaluation samples from the policy itself."""
  np.testing.assert_array_equal(LaggedSupport()(LogitContext(LOGITS)), LOGITS)


@pytest.fixture(scope='module')
def sampled(tiny):
  """(rows drawn on the support of another policy, params, piece)."""
  piece = LaggedSupport(p=0.5, min_tokens=2)
  params = {**tiny.params(), 'policies': {'lagged': tiny.params(1)}}
  sampling = decoding.SamplingConfig(transforms=(piece,))
  prompt = tiny.rollout()
  start = decoding.start_trajectories(
    prompt.prompt_NP,
    prompt.prompt_mask_NP,
    prompt.prompt_id_N,
    group_size=2,
    max_response_tokens=5,
  )
  draw = jax.jit(
    lambda params, key: decoding.generate(
      params, tiny.CFG, start, key, sampling, max_new_tokens=5
    )
  )
  return draw(params, jax.random.key(0)), params, piece


def log_probs(tiny, params, traj, *transforms, capacity=None):
  """Log-probs of the response tokens."""
  forward = statistics.Forward(model=tiny.CFG, capacity=capacity)
  score = jax.jit(statistics.token_statistics, static_argnums=(0, 3))
  stats = score(forward, params, traj, (), transforms)
  return stats['logp']


def score(tiny, params, traj, *transforms, capacity=None):
  """Log-probs and the gradient of their sum with respect to params."""

  def logp(params):
    logp_BT = log_probs(tiny, params, traj, *transforms, capacity=capacity)
    return logp_BT.sum(), logp_BT

  (_, logp_BT), grads = jax.value_and_grad(logp, has_aux=True)(params)
  return np.asarray(logp_BT), grads


def test_sampler_and_trainer_apply_the_same_mask(tiny, sampled):
  """E1; log-probs are never below those of the unmasked policy."""
  traj, params, piece = sampled
  found, grads = score(tiny, params, traj, piece)
  np.testing.assert_allclose(found, traj.logp_behaviour_BT, atol=1e-5)
  plain = log_probs(tiny, tiny.params(), traj)
  assert (found >= plain - 1e-6).all() and (found - plain).max() > 0.1
  assert not any(np.any(x) for x in jax.tree.leaves(grads['policies']))
  assert any(np.any(x) for x in jax.tree.leaves(grads['model']))


def test_the_whole_support_is_the_policy(tiny, sampled):
  """p = 1 reduces to the plain log-probs. E1."""
  traj, params, _ = sampled
  found = log_probs(tiny, params, traj, LaggedSupport(p=1.0))
  plain = log_probs(tiny, tiny.params(), traj)
  np.testing.assert_allclose(found, plain, atol=1e-6)


def test_one_copy_has_one_period(toy):
  """Two pieces with different periods are refused."""
  method = toy.get_method('nlpo')
  assert method.policies()['lagged'] == CopyEvery(iterations=5)
  assert not Method().policies()
  both = method.replace(logits=(LaggedSupport(), LaggedSupport(period=2)))
  with pytest.raises(
    ValueError, match="asks for the policy 'lagged' by CopyEvery.iterations=2"
  ):
    validate(both, group_size=8, has_value_head=True)


@pytest.mark.slow
def test_packed_logits_see_the_same_copy(tiny, sampled):
  """E1: log-probs and gradients of packed responses."""
  traj, params, piece = sampled
  lengths = np.asarray([5, 1, 2, 3, 1, 1, 3, 0])[:, None]
  on_BT = (np.arange(5)[None] < lengths).astype(np.int32)
  traj = traj.replace(kind_BT=on_BT, mask_BT=on_BT.astype(np.float32))
  found, grads = score(tiny, params, traj, piece, capacity=4)
  expected, plain_grads = score(tiny, params, traj, piece)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
  assert tiny.relative_gap(grads, plain_grads) < 1e-5
