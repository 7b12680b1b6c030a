"""The draw of one token and the transforms of its distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import rollouts

# Probabilities 0.5, 0.25, 0.125, 0.125.
LOGITS_1V = jnp.log(jnp.array([[0.5, 0.25, 0.125, 0.125]]))


def kept(transform, logits_RV=LOGITS_1V):
  return np.flatnonzero(np.isfinite(transform(logits_RV))[0]).tolist()


@pytest.mark.parametrize(
  'uniform, token',
  [(0.0, 0), (0.49, 0), (0.51, 1), (0.74, 1), (0.76, 2), (0.99, 3)],
)
def test_inverse_cdf_by_hand(uniform, token):
  """The CDF is 0.5, 0.75, 0.875, 1; the draw is the first above u."""
  drawn_B, logp_B = rollouts.sample_token(LOGITS_1V, jnp.array([uniform]))
  assert drawn_B.tolist() == [token]
  np.testing.assert_allclose(logp_B, LOGITS_1V[:, token], rtol=1e-6)


def test_frequencies_follow_the_softmax():
  """16,384 evenly spaced uniforms hit each token in proportion."""
  logits_V = jax.random.normal(jax.random.key(0), (7,))
  count = 1 << 14
  uniform_B = (jnp.arange(count) + 0.5) / count
  token_B, _ = rollouts.sample_token(
    jnp.broadcast_to(logits_V, (count, 7)), uniform_B
  )
  np.testing.assert_allclose(
    np.bincount(token_B, minlength=7) / count,
    jax.nn.softmax(logits_V),
    atol=2 / count,
  )


def test_a_masked_token_is_never_drawn():
  """Not even by the largest uniform, nor where sums round."""
  logits_BV = jnp.zeros((512, 300)).at[:, ::2].set(-jnp.inf)
  uniform_B = jnp.linspace(0.0, np.nextafter(np.float32(1), np.float32(0)), 512)
  token_B, logp_B = rollouts.sample_token(logits_BV, uniform_B)
  assert (np.asarray(token_B) % 2 == 1).all()
  np.testing.assert_allclose(logp_B, np.full(512, -np.log(150.0)), rtol=1e-5)


def test_greedy_takes_the_most_likely_token_whatever_the_draw():
  """Its log-prob is still that of the distribution."""
  token_B, logp_B = rollouts.sample_token(
    LOGITS_1V[:, ::-1], jnp.array([0.1]), greedy=True
  )
  assert token_B.tolist() == [3]
  np.testing.assert_allclose(logp_B, [np.log(0.5)], rtol=1e-6)


def test_top_k():
  """k = 2 keeps two; k = 3 ties with the fourth; k > V keeps all."""
  assert kept(rollouts.TopK(k=2)) == [0, 1]
  assert kept(rollouts.TopK(k=3)) == [0, 1, 2, 3]
  assert kept(rollouts.TopK(k=9)) == [0, 1, 2, 3]


def test_top_p():
  """Mass before the tokens: 0, 0.5, 0.75, 0.875; kept while below p."""
  assert kept(rollouts.TopP(p=0.4)) == [0]
  assert kept(rollouts.TopP(p=0.6)) == [0, 1]
  assert kept(rollouts.TopP(p=0.75)) == [0, 1]
  assert kept(rollouts.TopP(p=0.8)) == [0, 1, 2, 3]  # a tie stays
  assert kept(rollouts.TopP(p=1.0)) == [0, 1, 2, 3]
  assert kept(rollouts.TopP(p=0.6), LOGITS_1V[:, ::-1]) == [2, 3]


def test_min_p():
  """The largest is 0.5: p = 0.4 keeps what is at least 0.2."""
  assert kept(rollouts.MinP(p=0.4)) == [0, 1]
  assert kept(rollouts.MinP(p=0.2)) == [0, 1, 2, 3]


def test_temperature_comes_before_the_transforms():
  """Temperature 2 turns 0.5, 0.25 into 0.41 : 0.29, and p sees that."""
  sampling = rollouts.SamplingConfig(
    temperature=2.0, transforms=(rollouts.MinP(p=0.6),)
  )
  assert kept(sampling.transform) == [0, 1]
  np.testing.assert_allclose(
    sampling.transform(LOGITS_1V)[0, :2], LOGITS_1V[0, :2] / 2, rtol=1e-6
  )
  np.testing.assert_allclose(
    rollouts.Temperature(temperature=2.0)(LOGITS_1V), LOGITS_1V / 2
  )


@pytest.mark.parametrize(
  'make',
  [
    lambda: rollouts.SamplingConfig(temperature=0.0),
    lambda: rollouts.Temperature(temperature=-1.0),
    lambda: rollouts.TopK(k=0),
    lambda: rollouts.TopP(p=0.0),
    lambda: rollouts.MinP(p=1.5),
  ],
)
def test_values_out_of_range_are_refused(make):
  """Temperature 0 is spelled greedy=True."""
  with pytest.raises(ValueError, match='is outside'):
    make()


def test_a_new_temperature_is_the_same_program():
  """Floats are leaves: one trace for many values."""
  traces = []

  @jax.jit
  def draw(sampling, logits_BV):
    traces.append(1)
    return sampling.transform(logits_BV)

  for temperature in (0.5, 1.0, 2.0):
    draw(rollouts.SamplingConfig(temperature=temperature), LOGITS_1V)
  assert len(traces) == 1
