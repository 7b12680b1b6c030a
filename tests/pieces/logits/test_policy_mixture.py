"""The geometric mixture of two policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.logits.policy_mixture import PolicyMixture

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
  mixed = PolicyMixture(coef=coef)(logits, {'reference': other - 1})
  np.testing.assert_allclose(jax.nn.softmax(mixed)[0], expected, rtol=1e-5)


def test_an_evaluation_has_no_reference():
  logits = jnp.log(jnp.array(POLICY))
  np.testing.assert_array_equal(PolicyMixture()(logits), logits)
