"""Votes of samples by self-certainty."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.measures import best_of
from rl_jax.runtime import mesh as mesh_lib

A, B, C = 5, 6, 7
# Ranks 1 to 4, in another order: A has rank 1, B ranks 2 and 3, C rank 4.
CERTAINTY = np.array([[0.1, 0.9, 0.5, 0.4]])
ANSWER = np.array([[C, A, B, B]])


@pytest.mark.parametrize(
  ('power', 'winner'),
  [
    (0.0, 2),  # votes of A, B, C: 1, 2, 1
    (1.0, 2),  # 4, 5, 1
    (2.0, 1),  # 16, 13, 1
    (np.inf, 1),
  ],
)
def test_votes_by_hand(power, winner):
  """(4 - rank + 1)^power; the first sample of the answer wins."""
  found = best_of.winners(CERTAINTY, ANSWER, power)
  np.testing.assert_array_equal(found, [winner])
  # E0: only the order of certainties counts.
  again = best_of.winners(100.0 * CERTAINTY**3 - 7.0, ANSWER, power)
  np.testing.assert_array_equal(found, again)


def test_ties_and_samples_without_an_answer():
  """Equal votes: the answer seen first; no answer, no vote, its rank stays."""
  none = best_of.NO_ANSWER
  same = np.zeros((1, 4))
  assert best_of.winners(same, np.array([[B, A, A, B]]), 0.0) == [0]
  assert best_of.winners(same, np.array([[B, A, A, A]]), 1.0) == [1]  # 4, 6
  assert best_of.winners(CERTAINTY, np.array([[C, none, B, C]]), 1.0) == [0]
  assert best_of.winners(CERTAINTY, np.array([[C, none, B, none]]), 2.0) == [2]
  assert best_of.winners(CERTAINTY, np.array([[C, none, B, C]]), np.inf) == [2]
  assert best_of.winners(CERTAINTY, np.array([[none] * 4]), 1.0) == [none]


def test_outcomes_of_the_winners():
  """By clusters where a task has them; not judged is not an answer."""
  arrays = {
    'certainty': CERTAINTY,
    'text': np.array([[1, 2, 3, 4]]),
    'reward/outcome': np.array([[0.0, 1.0, 0.0, 0.0]]),
  }
  found = best_of.outcomes(arrays, 1.0)  # four answers: the most certain one
  assert found['vote/borda'] == [[1.0]] and found['vote/certain'] == [[1.0]]
  assert found['vote/majority'] == [[0.0]]  # the first
  arrays |= {best_of.CLUSTER: ANSWER.astype(float)}
  assert best_of.outcomes(arrays, 1.0)['vote/borda'] == [[0.0]]
  assert best_of.outcomes(arrays, 2.0)['vote/borda'] == [[1.0]]
  arrays['reward/outcome'] = np.array([[0.0, np.nan, 0.0, 0.0]])
  assert best_of.outcomes(arrays, 2.0)['vote/certain'] == [[0.0]]
  assert arrays[best_of.CLUSTER][0, 1] == A, 'inputs stay'
  keys = best_of.keys_of([' a', 'a\n', '', 'b'])
  assert keys[0] == keys[1] != keys[3] and keys[2] == best_of.NO_ANSWER


def test_certainty_is_the_mean_divergence_from_uniform(tiny):
  """KL(uniform || p) over tokens, from the distributions of the model."""
  traj, params = tiny.rollout(), tiny.params()
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  with jax.set_mesh(mesh):
    found = best_of.make_certainty(tiny.CFG, mesh)(params, traj)
  hidden = models.forward(
    params,
    tiny.CFG,
    traj.prompt_NP,
    traj.prompt_mask_NP,
    traj.response_BT,
    traj.mask_BT,
  )
  logp = jax.nn.log_softmax(models.logits(params, tiny.CFG, hidden))
  kl_BT = -(logp + jnp.log(tiny.CFG.vocab_size)).mean(-1)
  expected = (kl_BT * traj.mask_BT).sum(1) / traj.mask_BT.sum(1)
  np.testing.assert_allclose(found, expected, rtol=2e-5)
  p = jnp.array([0.7, 0.2, 0.1])
  np.testing.assert_allclose(-jnp.log(3 * p).mean(), 0.324287, rtol=1e-5)
