"""Losses of rows, and gradients of the output layer, by other ways."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.hidden_states import states_before
from rl_jax.learning.statistics import Forward
from rl_jax.measures import row_scores
from rl_jax.models import heads


def test_closed_form_by_hand(monkeypatch):
  """W = [[1,0],[0,1],[.5,-.5]], states (1,2), (0,1), tokens 1, 2: <g, W> is
  0.331582, |g|^2 0.316716.
  """
  weight = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]])
  hidden = jnp.array([[[1.0, 2.0], [0.0, 1.0], [7.0, 7.0]]])
  monkeypatch.setattr(row_scores, 'states_before', lambda *_: hidden)
  monkeypatch.setattr(
    row_scores.heads, 'logits', lambda p, m, h_TD: h_TD @ weight.T
  )

  class Rows:
    response_BT = jnp.array([[1, 2, 0]])
    mask_BT = jnp.array([[1.0, 1.0, 0.0]])  # the third place is padding

  found = row_scores.output_gradients(None, None, Rows)
  np.testing.assert_allclose(found['inner'], [0.331582], atol=1e-6)
  np.testing.assert_allclose(found['square'], [0.316716], atol=1e-6)


@pytest.mark.parametrize('tied', [True, False])
def test_gradients_are_those_of_the_output_layer(tiny, tied):
  """E1: against jax.grad of the mean loss of a row, states held."""
  model = dataclasses.replace(tiny.CFG, tied_embeddings=tied)
  params = tiny.params()
  weight = params['model']['embed']
  if not tied:
    params = {**params, 'model': {**params['model'], 'lm_head': weight.T}}
  traj = tiny.rollout()
  found = row_scores.output_gradients(model, params, traj)
  losses = row_scores.row_losses(model, params, traj)
  hidden = states_before(Forward(model=model), params, traj)
  for row in range(3):

    def loss(weight, row=row):
      name = 'embed' if tied else 'lm_head'
      own = {'model': {name: weight if tied else weight.T}}
      logp = jax.nn.log_softmax(heads.logits(own, model, hidden[row]))
      token = jnp.asarray(traj.response_BT[row])
      mask = traj.mask_BT[row]
      said = jnp.take_along_axis(logp, token[:, None], axis=1)[:, 0]
      return -(said * mask).sum() / mask.sum()

    value, gradient = jax.value_and_grad(loss)(weight)
    np.testing.assert_allclose(losses['nll'][row], value, rtol=1e-5)
    np.testing.assert_allclose(
      found['inner'][row], (gradient * weight).sum(), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
      found['square'][row], (gradient**2).sum(), rtol=1e-4
    )
  norm = row_scores.output_norm(model, params)
  np.testing.assert_allclose(norm, jnp.linalg.norm(weight), rtol=1e-6)


def test_capped_logits_are_refused(tiny):
  model = dataclasses.replace(tiny.CFG, logit_cap=30.0)
  with pytest.raises(ValueError, match='capped at 30.0'):
    row_scores.output_norm(model, tiny.params())


def test_ranking_scores_by_hand(monkeypatch):
  """V 0.5, 0.2; A = alpha (-1, 0): 0.5 - 0.1 - 0.9 0.2, then 0.2: 0.42."""
  stats = {
    'logp': jnp.array([[-1.5, -0.3, 9.0]]),
    'value_heads': jnp.array([[[0.3, 0.2], [0.2, 0.0], [7.0, 7.0]]]),
    'drawn_gap': jnp.array([[-1.0, 0.0, 9.0]]),
  }
  monkeypatch.setattr(
    row_scores.statistics, 'token_statistics', lambda *_: stats
  )

  class Rows:
    mask_BT = jnp.array([[1.0, 1.0, 0.0]])  # the third place is padding

  def score(alpha, gamma):
    found = row_scores.ranking_scores(
      None, None, Rows, alpha=alpha, gamma=gamma
    )
    np.testing.assert_allclose(found['logp'], [-1.8], rtol=1e-6)
    return float(found['score'][0])

  assert score(0.1, 0.9) == pytest.approx(0.42, abs=1e-6)
  # Without a discount the values of later states cancel.
  assert score(0.1, 1.0) == pytest.approx(0.5 - 0.1, abs=1e-6)
  assert score(0.5, 1.0) == pytest.approx(0.5 - 0.5, abs=1e-6)


def test_ranking_scores_of_a_model(tiny):
  """E1: log-probs are those of `row_losses`, and padding changes nothing."""
  params, traj = tiny.params(), tiny.rollout()
  found = row_scores.ranking_scores(
    tiny.CFG, params, traj, alpha=0.5, gamma=0.9
  )
  nll = row_scores.row_losses(tiny.CFG, params, traj)
  np.testing.assert_allclose(
    found['logp'], -nll['nll'] * nll['tokens'], rtol=1e-4
  )
  assert np.isfinite(found['score']).all()
