"""Labels of several aspects for the value heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.losses import AspectRegression
from rl_jax.pieces.roles import LossContext
from rl_jax.pieces.row_inputs import NO_LABEL

MASK = np.array([[1, 1, 1], [1, 1, 0]])
# After the last trained tokens: (0.8, 0.4) and (0.1, 2.0).
VALUES = np.array(
  [[[9, 9], [9, 9], [0.8, 0.4]], [[9, 9], [0.1, 2.0], [9, 9]]], np.float32
)
LABELS = np.array([[1.0, 0.5], [0.0, NO_LABEL]], np.float32)


def evaluate(toy, values=VALUES, labels=LABELS, mask=MASK, num_aspects=2):
  traj = toy.trajectories(mask, group_size=1)
  traj = traj.replace(extras={'aspect_label_BA': jnp.asarray(labels)})
  stats = {'value_heads_after': jnp.asarray(values)}
  piece = jax.jit(AspectRegression(num_aspects=num_aspects))
  out = piece(LossContext(stats, traj))
  return float(out.value), out.metrics


def test_by_hand(toy):
  """(0.2^2 + 0.1^2) / 2 of the first row only; with the second / 3."""
  alone = evaluate(toy, VALUES[:1], LABELS[:1], MASK[:1])[0]
  assert alone == pytest.approx(0.025, abs=1e-6)
  loss, metrics = evaluate(toy)
  assert loss == pytest.approx((0.04 + 0.01 + 0.01) / 3, abs=1e-6)
  assert metrics['value/error_0'] == pytest.approx(0.15, abs=1e-6)
  assert metrics['value/error_1'] == pytest.approx(0.1, abs=1e-6)


def test_one_aspect_is_the_mean_square(toy):
  """E0."""
  found = evaluate(toy, VALUES[..., :1], LABELS[:, :1], num_aspects=1)[0]
  assert found == pytest.approx((0.04 + 0.01) / 2, abs=1e-6)


def test_missing_labels_and_other_tokens_count_nowhere(toy):
  """E0: values there may be anything; the order of aspects changes nothing."""
  wild = np.where(VALUES == 9, np.nan, VALUES)
  wild[1, 1, 1] = 1e30
  assert evaluate(toy, wild)[0] == evaluate(toy)[0]
  turned = evaluate(toy, VALUES[..., ::-1], LABELS[:, ::-1])[0]
  assert turned == pytest.approx(evaluate(toy)[0], rel=1e-6)


def test_another_number_of_labels_is_named(toy):
  with pytest.raises(ValueError, match='num_aspects = 3, but the data .* of 2'):
    evaluate(toy, num_aspects=3)
