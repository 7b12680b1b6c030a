"""Compute in bfloat16 with float32 parameters, statistics and sums.

Tolerance. Rounding to bfloat16 is a relative error of at most u = 2^-8, of
standard deviation u / sqrt(3). A path through a layer has at most 21 roundings
(7 products with rounded weights and inputs, norms, rotation, sums), embedding
and output 3. Added up as independent errors they turn the logits, of standard
deviation z, by z * u / sqrt(3) * sqrt(21 L + 3), and a log-prob, a difference
of two of them, by sqrt(2) as much. Four of that is the limit.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.models import heads, mixed_precision, transformer
from rl_jax.types import PAD

MAX_RESPONSE = 6


def tolerance(params, cfg, hidden_BTD):
  """In nats, from the spread of the logits; see above."""
  deviation = float(models.logits(params, cfg, hidden_BTD).std())
  roundings = 21 * cfg.num_layers + 3
  return 4 * 2**0.5 * deviation * 2.0**-8 * (roundings / 3) ** 0.5


@pytest.fixture
def sampled(tiny):
  """(half config, params, rollout sampled by it, log-probs by config)."""
  cfg = dataclasses.replace(tiny.CFG, value_head=False, qkv_bias=True)
  half = dataclasses.replace(cfg, compute_dtype='bfloat16')
  params = {**tiny.params()}
  del params['value_head']
  layers = params['model']['layers'] | {
    name: jnp.full((1, heads_, cfg.head_size), 0.3)
    for name, heads_ in (('bq', 2), ('bk', 1), ('bv', 1))
  }
  params['model'] = params['model'] | {'layers': layers}
  traj = tiny.rollout()
  traj = decoding.start_trajectories(
    traj.prompt_NP,
    traj.prompt_mask_NP,
    traj.prompt_id_N,
    group_size=2,
    max_response_tokens=MAX_RESPONSE,
  )
  traj = jax.jit(
    functools.partial(
      decoding.generate,
      cfg=half,
      sampling=decoding.SamplingConfig(eos_ids=(3,)),
      max_new_tokens=MAX_RESPONSE,
    )
  )(params, traj=traj, key=jax.random.key(2))
  return cfg, half, params, traj


@pytest.mark.slow
def test_sampler_and_trainer_agree_in_bfloat16(sampled):
  """Log-probs of sampler, trainer and the float32 trainer, pairwise."""
  cfg, half, params, traj = sampled
  logp = {
    c.compute_dtype: statistics.token_statistics(
      Forward(model=c), params, traj, ()
    )[statistics.LOGP]
    for c in (cfg, half)
  }
  on_BT = (traj.kind_BT != PAD).astype(jnp.float32)
  hidden = transformer.forward(
    params,
    cfg,
    traj.prompt_NP,
    traj.prompt_mask_NP,
    traj.response_BT,
    on_BT,
  )
  limit = tolerance(params, cfg, hidden)

  def gap(x, y):
    return float(jnp.abs((x - y) * traj.mask_BT).max())

  exact, rounded = logp['float32'], logp['bfloat16']
  assert rounded.dtype == jnp.float32
  rounding = gap(rounded, exact)
  assert limit / 100 < rounding < limit  # it is bfloat16, and no worse
  assert gap(traj.logp_behaviour_BT, rounded) < limit
  assert gap(traj.logp_behaviour_BT, exact) < limit


@pytest.mark.slow
def test_gradients_are_float32_and_near_those_of_float32(sampled):
  """In direction: every parameter's gradient has a cosine above 0.99."""
  cfg, half, params, traj = sampled

  def loss(params, cfg):
    stats = statistics.token_statistics(Forward(model=cfg), params, traj, ())
    weight_B = jnp.cos(jnp.arange(traj.length_B.shape[0], dtype=jnp.float32))
    return (stats[statistics.LOGP] * weight_B[:, None]).sum()

  gradient = jax.jit(jax.grad(loss), static_argnums=1)
  pairs = zip(
    jax.tree.leaves(gradient(params, cfg)),
    jax.tree.leaves(gradient(params, half)),
    strict=True,
  )
  for exact, rounded in pairs:
    assert rounded.dtype == jnp.float32
    x, y = exact.ravel(), rounded.ravel()
    if float(jnp.linalg.norm(x)) > 1e-3:  # softmax does not see key biases
      cosine = x @ y / jnp.linalg.norm(x) / jnp.linalg.norm(y)
      assert float(cosine) > 0.99


def test_sums_over_tokens_are_float32():
  """The sum of 4096 gradients of 1; a bfloat16 sum would stop growing
  at 256.
  """
  token = np.zeros((4, 1024), np.int32)
  y = np.zeros((4096, 2), jnp.bfloat16)

  def total(table, bias):
    found = mixed_precision.lookup(table, token, 'bfloat16')
    return found.sum() + mixed_precision.add_bias(y, bias).sum()

  gradient = jax.jit(jax.grad(total, argnums=(0, 1)))
  of_table, of_bias = gradient(np.zeros((3, 2), np.float32), np.zeros(2))
  np.testing.assert_array_equal(of_table, [[4096, 4096], [0, 0], [0, 0]])
  np.testing.assert_array_equal(of_bias, [4096, 4096])


def products_in(jaxpr):
  """Every dot_general of a program, inner programs included."""
  for equation in jaxpr.eqns:
    if equation.primitive.name == 'dot_general':
      yield equation
    for value in equation.params.values():
      inner = getattr(value, 'jaxpr', value)
      if hasattr(inner, 'eqns'):
        yield from products_in(inner)


def test_output_products_have_bfloat16_operands(tiny):
  """Forward and backward; the logits themselves are float32."""
  half = dataclasses.replace(tiny.CFG, compute_dtype='bfloat16')
  hidden = jnp.ones((2, 3, half.width), jnp.bfloat16)
  assert models.logits(tiny.params(), half, hidden).dtype == jnp.float32

  def total(params, hidden):
    return heads.logits(params, half, hidden).sum()

  gradient = jax.grad(total, argnums=(0, 1))
  program = jax.make_jaxpr(gradient)(tiny.params(), hidden)
  products = list(products_in(program.jaxpr))
  assert len(products) >= 3
  for product in products:
    assert all(x.aval.dtype == jnp.bfloat16 for x in product.invars)
