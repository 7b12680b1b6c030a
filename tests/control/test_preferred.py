"""OPPO: an embedding that is learned from preferences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import preferred
from rl_jax.control.preferred import Preferred, Segments


def test_losses_by_hand():
  """E1: distances .894427 and 1.802776, loss .091652, norms 0 and .25."""
  w, near = jnp.array([1.0, 0]), jnp.array([0.6, 0.8])
  far = jnp.array([0.0, -1.5])
  np.testing.assert_allclose(preferred.distance(w, near), 0.894427, rtol=1e-5)
  np.testing.assert_allclose(preferred.distance(w, far), 1.802776, rtol=1e-5)
  np.testing.assert_allclose(
    preferred.triplet(w, near, far), 0.091652, rtol=1e-4
  )
  terms = preferred.norm_term(jnp.stack([near, far]))
  np.testing.assert_allclose(terms, [0.0, 0.25], atol=1e-6)


def test_what_is_far_away_has_no_gradient():
  """E0: nor has a distance of 0, where the root has none."""
  w, near = jnp.array([1.0, 0]), jnp.array([0.6, 0.8])
  far = jnp.array([0.0, -9.0])
  assert preferred.triplet(w, near, far) == 0
  grads = jax.grad(preferred.triplet, argnums=(0, 1, 2))(w, near, far)
  assert not any(np.any(x) for x in grads)
  assert not np.isnan(jax.grad(preferred.triplet)(w, w, near)).any()


def test_swapped_labels_cost_twice_the_margin():
  """E1: at least."""
  x = jax.random.normal(jax.random.key(0), (3, 50, 4))
  both = preferred.triplet(x[0], x[1], x[2]) + preferred.triplet(
    x[0], x[2], x[1]
  )
  assert both.min() >= 2 * preferred.MARGIN - 1e-5


def styles():
  """Segments that go left or right, whatever the state."""
  sign = jnp.where(jnp.arange(40) < 20, -0.8, 0.8)
  obs = jax.random.normal(jax.random.key(0), (40, 5, 2))
  return Segments(obs, jnp.broadcast_to(sign[:, None, None], (40, 5, 1))), sign


def test_the_preferred_style_is_imitated():
  """With w it acts as the preferred half; labels decide which half."""
  data, sign = styles()
  learner = Preferred(width=16, size=2, rate=1e-2)
  for wanted in (1.0, -1.0):
    fit = jax.jit(lambda s: learner.fit(data, s, jax.random.key(1), 300)[0])
    state = fit(wanted * sign)
    action = learner.action(state.params, data.obs[0], state.w)
    assert (wanted * action > 0.3).all()


def test_without_pull_w_never_moves():
  """E0: z is then a free code of styles, whatever the labels are."""
  data, sign = styles()
  learner = Preferred(width=16, size=2, pull=0.0)
  start = learner.init(data, jax.random.fold_in(jax.random.key(1), 5))
  state, metrics = learner.fit(data, sign, jax.random.key(1), 5)
  np.testing.assert_array_equal(state.w, start.w)
  assert metrics['rebuilt'].shape == (5,)


def test_equal_scores_are_no_pairs():
  """E0: w stays where nothing is preferred."""
  data, sign = styles()
  learner = Preferred(width=16, size=2)
  start = learner.init(data, jax.random.fold_in(jax.random.key(1), 5))
  state, _ = learner.fit(data, 0 * sign, jax.random.key(1), 5)
  np.testing.assert_array_equal(state.w, start.w)


@pytest.mark.parametrize(
  'sizes, words',
  [
    (((6, 4, 2), (6, 3, 2), (6,)), r'Segments.action has shape \(6, 3, 2\)'),
    (((6, 4, 2), (5, 4, 2), (6,)), r'Segments.action has shape \(5, 4, 2\)'),
    (((6, 4), (6, 4, 2), (6,)), r'Segments.obs has shape \(6, 4\)'),
    (((6, 0, 2), (6, 0, 2), (6,)), r'Segments.obs has shape \(6, 0, 2\)'),
    (((6, 4, 2), (6, 4, 2), (5,)), r'score_N has shape \(5,\)'),
  ],
)
def test_unequal_segments_are_refused_when_they_are_traced(sizes, words):
  """A gather would take other rows of a wrong length without a word."""
  obs, action, score = (jnp.zeros(size) for size in sizes)
  with pytest.raises(ValueError, match=words):
    jax.jit(lambda key: Preferred().fit(Segments(obs, action), score, key, 2))(
      jax.random.key(0)
    )
