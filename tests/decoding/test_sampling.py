"""The draw of one token and the transforms of its distribution."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.decoding import sampling
from rl_jax.pieces.roles import LogitContext
from rl_jax.runtime.platform import Platform

DRAW = jax.jit(decoding.sample_token, static_argnames=('greedy', 'platform'))

# Probabilities 0.5, 0.25, 0.125, 0.125.
LOGITS_1V = jnp.log(jnp.array([[0.5, 0.25, 0.125, 0.125]]))


@pytest.fixture(params=['cpu', 'cuda'])
def draw(request):
  """With two passes over the logits, and with one."""
  return functools.partial(DRAW, platform=Platform(request.param))


def kept(transform, logits_RV=LOGITS_1V):
  found = decoding.SamplingConfig(transforms=(transform,)).transform(logits_RV)
  return np.flatnonzero(np.isfinite(found)[0]).tolist()


@pytest.mark.parametrize(
  'uniform, token',
  [(0.0, 0), (0.49, 0), (0.51, 1), (0.74, 1), (0.76, 2), (0.99, 3)],
)
def test_inverse_cdf_by_hand(draw, uniform, token):
  """The CDF is 0.5, 0.75, 0.875, 1; the draw is the first above u."""
  drawn_B, logp_B = draw(LOGITS_1V, jnp.array([uniform]))
  assert drawn_B.tolist() == [token]
  np.testing.assert_allclose(logp_B, LOGITS_1V[:, token], rtol=1e-6)


@pytest.mark.parametrize('vocab_size', [7, 60])
def test_frequencies_follow_the_softmax(draw, vocab_size):
  """16,384 evenly spaced uniforms hit each token in proportion.

  60 tokens are ten blocks of six; 7, a prime, seven blocks of one.
  """
  logits_V = 2 * jax.random.normal(jax.random.key(0), (vocab_size,))
  count = 1 << 14
  uniform_B = (jnp.arange(count) + 0.5) / count
  token_B, _ = draw(jnp.broadcast_to(logits_V, (count, vocab_size)), uniform_B)
  np.testing.assert_allclose(
    np.bincount(token_B, minlength=vocab_size) / count,
    jax.nn.softmax(logits_V),
    atol=2 / count,
  )


def rows_with_gaps(vocab_size):
  """Logits of 64 rows in which tokens and whole blocks have no mass."""
  rng = np.random.default_rng(3)
  logits_BV = rng.normal(size=(64, vocab_size)).astype(np.float32) * 3
  logits_BV[rng.random(logits_BV.shape) < 0.3] = -np.inf
  size = sampling.block_size(vocab_size)
  logits_BV[:16, :size] = -np.inf  # the first block
  logits_BV[8:24, -2 * size :] = -np.inf  # the last ones
  logits_BV[24:40, size : 3 * size] = -500.0  # exp gives 0
  return logits_BV


def test_two_levels_draw_the_token_of_the_whole_cdf(draw):
  """E2: the token of a cumulative sum in float64, unless a limit is near."""
  logits_BV = rows_with_gaps(512)
  uniform_B = np.random.default_rng(4).random(64, np.float32)
  token_B, logp_B = draw(logits_BV, uniform_B)
  exact_BV = np.exp(logits_BV.astype(np.float64))
  exact_BV /= exact_BV.sum(axis=1, keepdims=True)
  cdf_BV = exact_BV.cumsum(axis=1)
  clear_B = np.abs(cdf_BV - uniform_B[:, None]).min(axis=1) > 1e-6
  assert clear_B.sum() > 60
  expected_B = (cdf_BV > uniform_B[:, None]).argmax(axis=1)
  np.testing.assert_array_equal(token_B[clear_B], expected_B[clear_B])
  assert len(set(expected_B // sampling.block_size(512))) > 10
  np.testing.assert_allclose(
    logp_B, np.log(exact_BV[np.arange(64), token_B]), rtol=1e-5, atol=1e-5
  )


@pytest.mark.parametrize('uniform', [0.0, 1.0 - 2.0**-24, 1.0])
def test_extreme_uniforms_hit_tokens_with_mass(draw, uniform):
  """The first and the last one; 1 itself, which no draw gives, does no harm."""
  logits_BV = rows_with_gaps(512)
  token_B, logp_B = draw(logits_BV, jnp.full(64, uniform, jnp.float32))
  assert (np.asarray(logp_B) > -100).all()
  mass_BV = logits_BV > -500
  if uniform == 0:
    np.testing.assert_array_equal(token_B, mass_BV.argmax(axis=1))
  else:
    # Rounding may end before tokens that together have less than 1e-6.
    exact_BV = np.exp(logits_BV.astype(np.float64))
    exact_BV /= exact_BV.sum(axis=1, keepdims=True)
    behind_BV = 1.0 - exact_BV.cumsum(axis=1)
    assert behind_BV[np.arange(64), token_B].max() < 1e-6


def test_a_draw_does_not_depend_on_the_batch(draw):
  """E2: in other company and in another order."""
  logits_BV = rows_with_gaps(512)
  uniform_B = np.random.default_rng(4).random(64, np.float32)
  token_B, logp_B = draw(logits_BV, uniform_B)
  for rows in (np.array([30, 2, 17]), np.arange(64)[::-1]):
    found_R, logp_R = draw(logits_BV[rows], uniform_B[rows])
    np.testing.assert_array_equal(found_R, token_B[rows])
    np.testing.assert_allclose(logp_R, logp_B[rows], rtol=1e-5, atol=1e-5)


def test_block_sizes():
  """The largest divisor up to the root; tokenizers' sizes have good ones."""
  sizes = {14: 2, 19: 1, 512: 16, 49152: 192, 151936: 128, 152064: 384}
  assert {v: sampling.block_size(v) for v in sizes} == sizes


def test_a_masked_token_is_never_drawn(draw):
  """Not even by the largest uniform, nor where sums round."""
  logits_BV = jnp.zeros((512, 300)).at[:, ::2].set(-jnp.inf)
  uniform_B = jnp.linspace(0.0, np.nextafter(np.float32(1), np.float32(0)), 512)
  token_B, logp_B = draw(logits_BV, uniform_B)
  assert (np.asarray(token_B) % 2 == 1).all()
  np.testing.assert_allclose(logp_B, np.full(512, -np.log(150.0)), rtol=1e-5)


def test_one_pass_finds_the_log_probs_of_two():
  """Tokens have mass or none; the first of equal largest logits is taken."""
  logits_BV = jnp.asarray(rows_with_gaps(512)).at[:, 300:302].set(9.0)
  token_B = jnp.arange(64) * 8
  run = jax.jit(sampling.log_probs, static_argnames='platform')
  once, twice = (
    run(logits_BV, token_B, platform=Platform(name)) for name in ('cuda', 'cpu')
  )
  np.testing.assert_allclose(once, twice, rtol=1e-5)
  found = DRAW(logits_BV, jnp.zeros(64), greedy=True, platform=Platform('cuda'))
  np.testing.assert_array_equal(found[0], jnp.argmax(logits_BV, axis=1))


def test_greedy_takes_the_most_likely_token_whatever_the_draw(draw):
  """Its log-prob is still that of the distribution."""
  token_B, logp_B = draw(LOGITS_1V[:, ::-1], jnp.array([0.1]), greedy=True)
  assert token_B.tolist() == [3]
  np.testing.assert_allclose(logp_B, [np.log(0.5)], rtol=1e-6)


def test_top_k():
  """k = 2 keeps two; k = 3 ties with the fourth; k > V keeps all."""
  assert kept(decoding.TopK(k=2)) == [0, 1]
  assert kept(decoding.TopK(k=3)) == [0, 1, 2, 3]
  assert kept(decoding.TopK(k=9)) == [0, 1, 2, 3]


def test_top_p():
  """Mass before the tokens: 0, 0.5, 0.75, 0.875; kept while below p."""
  assert kept(decoding.TopP(p=0.4)) == [0]
  assert kept(decoding.TopP(p=0.6)) == [0, 1]
  assert kept(decoding.TopP(p=0.75)) == [0, 1]
  assert kept(decoding.TopP(p=0.8)) == [0, 1, 2, 3]  # a tie stays
  assert kept(decoding.TopP(p=1.0)) == [0, 1, 2, 3]
  assert kept(decoding.TopP(p=0.6), LOGITS_1V[:, ::-1]) == [2, 3]


def test_min_p():
  """The largest is 0.5: p = 0.4 keeps what is at least 0.2."""
  assert kept(decoding.MinP(p=0.4)) == [0, 1]
  assert kept(decoding.MinP(p=0.2)) == [0, 1, 2, 3]


def test_temperature_comes_before_the_transforms():
  """Temperature 2 turns 0.5, 0.25 into 0.41 : 0.29, and p sees that."""
  config = decoding.SamplingConfig(
    temperature=2.0, transforms=(decoding.MinP(p=0.6),)
  )
  found = config.transform(LOGITS_1V)
  assert np.isfinite(found[0]).tolist() == [True, True, False, False]
  np.testing.assert_allclose(
    config.transform(LOGITS_1V)[0, :2], LOGITS_1V[0, :2] / 2, rtol=1e-6
  )
  np.testing.assert_allclose(
    decoding.Temperature(temperature=2.0)(LogitContext(LOGITS_1V)),
    LOGITS_1V / 2,
  )


def test_a_new_temperature_is_the_same_program():
  """Floats are leaves: one trace for many values."""
  traces = []

  @jax.jit
  def draw(config, logits_BV):
    traces.append(1)
    return config.transform(logits_BV)

  for temperature in (0.5, 1.0, 2.0):
    draw(decoding.SamplingConfig(temperature=temperature), LOGITS_1V)
  assert len(traces) == 1
