"""Norms of gradients by the embeddings, by another way."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.hidden_states import Forward, states_before
from rl_jax.models import heads
from rl_jax.models.gradient_norms import embedding_norms


@pytest.mark.parametrize('tied', [True, False])
def test_norms_are_those_of_the_summed_log_probability(tiny, tied):
  """E1: against the gradient of each row in the whole batch."""
  model = dataclasses.replace(tiny.CFG, tied_embeddings=tied)
  params = tiny.params()
  if not tied:
    head = jnp.flip(params['model']['embed'], 0).T
    params = {**params, 'model': {**params['model'], 'lm_head': head}}
  traj = tiny.rollout()

  def log_probabilities(embed):
    own = {**params, 'model': {**params['model'], 'embed': embed}}
    hidden = states_before(Forward(model=model), own, traj)
    logp = jax.nn.log_softmax(heads.logits(own, model, hidden))
    said = jnp.take_along_axis(
      logp, jnp.asarray(traj.response_BT)[:, :, None], axis=2
    )[:, :, 0]
    return (said * traj.mask_BT).sum(1)

  by_row = jax.jacrev(log_probabilities)(params['model']['embed'])
  expected = np.sqrt((np.asarray(by_row) ** 2).sum((1, 2)))
  found = embedding_norms(model, params, traj)
  np.testing.assert_allclose(found, expected, rtol=1e-4)
  assert np.ptp(expected) > 0.1


def test_a_row_that_trains_nothing_has_no_norm(tiny):
  """E0; the others keep theirs (E1)."""
  traj, params = tiny.rollout(), tiny.params()
  silent = traj.replace(mask_BT=traj.mask_BT * (np.arange(8) != 3)[:, None])
  found = embedding_norms(tiny.CFG, params, silent)
  assert found[3] == 0.0
  whole = embedding_norms(tiny.CFG, params, traj)
  np.testing.assert_allclose(found[:3], whole[:3], rtol=1e-6)


def test_padding_changes_nothing(tiny):
  """E1: further columns of padding."""
  traj, params = tiny.rollout(), tiny.params()
  wide = {
    name: jnp.pad(getattr(traj, name), ((0, 0), (0, 2)))
    for name in ('response_BT', 'kind_BT', 'mask_BT')
  }
  np.testing.assert_allclose(
    embedding_norms(tiny.CFG, params, traj.replace(**wide)),
    embedding_norms(tiny.CFG, params, traj),
    rtol=1e-5,
  )
