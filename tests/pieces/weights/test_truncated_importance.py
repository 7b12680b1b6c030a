"""Truncated importance weights by hand."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights

OLD = np.full((2, 2), -1.0)
# Differences 1, -.2 and .3, .2.
DRAWN = OLD - np.array([[1.0, -0.2], [0.3, 0.2]])


def evaluate(toy, piece, drawn=DRAWN, **fields):
  """(weights, metrics)."""
  traj = toy.trajectories(
    fields.pop('mask_BT', np.ones((2, 2))),
    group_size=2,
    logp_old_BT=OLD,
    logp_behaviour_BT=drawn,
    **fields,
  )
  return piece({}, traj, jax.random.key(0))


def test_tokens_by_hand(toy):
  """e is cut to 2; e^-.2 = .818731, e^.3 = 1.349859, e^.2 = 1.221403."""
  weight, metrics = evaluate(toy, weights.TruncatedImportance())
  np.testing.assert_allclose(
    weight, [[2, 0.818731], [1.349859, 1.221403]], rtol=1e-5
  )
  np.testing.assert_array_equal(
    metrics['policy/truncated_fraction'], [[1, 0], [0, 0]]
  )


def test_sequences_by_hand(toy):
  """Sums .8 and .5: e^.8 = 2.225541 is cut, e^.5 = 1.648721."""
  weight, _ = evaluate(toy, weights.TruncatedImportance(level='sequence'))
  np.testing.assert_allclose(weight, [[2, 2], [1.648721] * 2], rtol=1e-5)


def test_normalised_after_truncation(toy):
  """Over tokens: mean 5.389993 / 4. Over rows: mean 3.648721 / 2."""
  piece = weights.TruncatedImportance(normalize=True)
  np.testing.assert_allclose(
    evaluate(toy, piece)[0][0, 0], 8 / 5.389993, rtol=1e-5
  )
  piece = weights.TruncatedImportance(level='sequence', normalize=True)
  weight, _ = evaluate(toy, piece)
  np.testing.assert_allclose(weight[:, 0], [1.096275, 0.903725], rtol=1e-5)


@pytest.mark.parametrize('level', ['token', 'sequence'])
@pytest.mark.parametrize('normalize', [False, True])
def test_no_mismatch_is_no_weight(toy, level, normalize):
  """E0: 1 on kept tokens, 0 on masked ones, whatever stands there."""
  mask = np.array([[1.0, 0], [1, 1]])
  piece = weights.TruncatedImportance(level=level, normalize=normalize)
  drawn = np.where(mask > 0, OLD, -7.0)
  weight, _ = evaluate(toy, piece, drawn, mask_BT=mask)
  np.testing.assert_array_equal(weight, mask)


def test_fields_are_checked():
  """Names field and choices."""
  with pytest.raises(ValueError, match='TruncatedImportance.limit = 0'):
    weights.TruncatedImportance(limit=0.0)
  with pytest.raises(ValueError, match='token, sequence'):
    weights.TruncatedImportance(level='row')
