"""Statistics of the router: those of transformers, in any microbatches."""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import model_checks, statistics, update
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models import params as params_lib
from rl_jax.models.files import hf_import
from rl_jax.pieces import losses, regularizers
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import LossContext

KEY = jax.random.key(0)
GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'
PIECE = regularizers.RouterBalance(coef=0.5)


@pytest.mark.parametrize(
  ('family', 'aux_loss'),
  [
    ('olmoe', 3.856158494949341),
    pytest.param('qwen3_moe', 2.2328686714172363, marks=pytest.mark.slow),
  ],
)
def test_the_loss_is_that_of_transformers(toy, family, aux_loss):
  """The loss counts all tokens but the last, which predicts nothing here.

  aux_loss: of transformers 5.23.0 (output_router_logits=True) for the ids of
  the golden file without the last one of each row.
  """
  cfg, params = hf_import.import_weights(GOLDEN / family)
  ids = np.load(GOLDEN / family / 'golden.npz')['ids']
  B, S = ids.shape
  traj = toy.trajectories(
    np.ones((B, S - 1)),
    group_size=1,
    prompt_NP=ids[:, :1],
    prompt_mask_NP=np.ones((B, 1), np.float32),
    response_BT=ids[:, 1:],
  )
  stats = jax.jit(
    lambda params: statistics.token_statistics(
      Forward(model=cfg), params, traj, statistics.ROUTER
    )
  )(params)
  loss = PIECE(LossContext(stats, traj, KEY)).value
  np.testing.assert_allclose(loss, 0.5 * aux_loss, rtol=1e-5)
  np.testing.assert_allclose(
    stats['router_taken'].sum(-1), cfg.experts_per_token, rtol=1e-6
  )


@pytest.mark.slow
def test_microbatches_and_packing_change_nothing(tiny):
  """E1: the means are those of the minibatch, and the router learns."""
  cfg = dataclasses.replace(
    tiny.CFG, value_head=False, num_experts=4, experts_per_token=2, num_layers=2
  )
  traj = tiny.rollout()
  method = Method(
    losses=(losses.Reinforce(), PIECE), aggregation=TokenMean()
  ).as_arrays()
  batch = update.Batch(frozen={}, method=method, traj=traj, key=KEY)

  @functools.partial(jax.jit, static_argnums=1)
  def gradient(params, forward):
    grads, loss, metrics, _ = update.minibatch_gradient(
      forward, params, batch, {}, reuse_scores=False
    )
    return grads, (loss, metrics)

  whole = Forward(model=cfg)
  params = params_lib.init_params(cfg, KEY)
  grads, found = gradient(params, whole)
  assert found[1]['train/expert_load_max'] > 1
  assert jnp.abs(grads['model']['layers']['router']).max() > 1e-4
  for forward in (
    dataclasses.replace(whole, microbatches=4),
    dataclasses.replace(whole, capacity=8),
  ):
    other, same = gradient(params, forward)
    assert tiny.relative_gap(other, grads) < 1e-5
    jax.tree.map(
      functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
      same,
      found,
    )


def test_a_router_that_nobody_can_read_is_refused(tiny):
  """Before the first compile, with the reason."""
  method = Method(losses=(losses.Reinforce(), PIECE), aggregation=TokenMean())
  with pytest.raises(ValueError, match='router_probs.* has no experts'):
    model_checks.check_router(method, tiny.CFG, 1)
  experts = dataclasses.replace(tiny.CFG, num_experts=2, experts_per_token=1)
  model_checks.check_router(method, experts, 1)
  with pytest.raises(ValueError, match='mesh.sequence = 2 splits'):
    model_checks.check_router(method, experts, 2)
