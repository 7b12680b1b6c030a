"""The geometric mixture of two policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.logits.policy_mixture import PolicyMixture
from rl_jax.pieces.roles import LogitContext

POLICY, REFERENCE = [[0.8, 0.2]], [[0.4, 0.6]]


@pytest.mark.parametrize(
  'coef, expected',
  [
    (0.0, [0.8, 0.2]),
    (0.25, [0.718767, 0.281233]),
    (0.5, [0.620204, 0.379796]),
    (1.0, [0.4, 0.6]),
  ],
)
def test_by_hand(coef, expected):
  """Logits may lack any constant."""
  logits, other = jnp.log(jnp.array(POLICY)) + 2, jnp.log(jnp.array(REFERENCE))
  mixed = PolicyMixture(coef=coef)(
    LogitContext(logits, {'reference': other - 1})
  )
  np.testing.assert_allclose(jax.nn.softmax(mixed)[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
  'coef, expected',
  [
    (0.0, [0.8, 0.0, 0.2]),
    (0.5, [0.697831, 0.0, 0.302169]),  # sqrt(.8 .4) to sqrt(.2 .3)
    (1.0, [0.4, 0.3, 0.3]),
  ],
)
def test_tokens_that_were_cut(coef, expected):
  """After a cut of the policy: no NaN, and only the other puts them back."""
  logits = jnp.array([[jnp.log(0.8), -jnp.inf, jnp.log(0.2)]])
  other = jnp.log(jnp.array([[0.4, 0.3, 0.3]]))
  mix = jax.jit(lambda piece: piece(LogitContext(logits, {'reference': other})))
  probs = jax.nn.softmax(mix(PolicyMixture(coef=coef)))[0]
  np.testing.assert_allclose(probs, expected, rtol=1e-5)


def test_an_evaluation_has_no_reference():
  logits = jnp.log(jnp.array(POLICY))
  np.testing.assert_array_equal(PolicyMixture()(LogitContext(logits)), logits)
