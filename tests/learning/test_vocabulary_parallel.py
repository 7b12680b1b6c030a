"""Scoring and sampling with the output weights split over the tensor axis.

The compiler splits the log-softmax by itself: every device computes the logits
of its own part of the vocabulary, and maxima, sums and the taken token's logit
are combined as [rows] numbers. Sampling also sends the sums of blocks and one
block of logits a row. These tests hold it to that.
"""

import functools
import math
import re

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax import decoding, models, types
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.models import params as params_lib
from rl_jax.overrides import override
from rl_jax.pieces.statistics import Certainty
from rl_jax.planning import abstract_run
from rl_jax.runtime import mesh as mesh_lib

pytestmark = [pytest.mark.devices, pytest.mark.slow]

# No other size of the programs has this factor.
PRIME = 131
V = 8 * PRIME
N, G, P, T = 8, 2, 5, 6
NEEDS = ('logp', 'entropy', Certainty())


def make_model(**changes):
  """One layer and a vocabulary that the axes divide."""
  sizes = dict(num_layers=1, width=32, num_heads=8, num_kv_heads=8)
  sizes |= dict(vocab_size=V, head_size=8, mlp_size=48)
  return models.ModelConfig(**sizes, **changes)


def make_mesh(shape):
  """Axes data, fsdp, tensor."""
  return mesh_lib.make_mesh(
    mesh_lib.MeshConfig(data=shape[0], fsdp=shape[1], tensor=shape[2])
  )


def vocabulary_axes(text):
  """The sizes of all axes of all arrays of a program that split V."""
  shapes = re.findall(r'\b[a-z]+\d+\[([\d,]+)\]', text)
  sizes = {int(n) for shape in shapes for n in shape.split(',')}
  return {n for n in sizes if n % PRIME == 0}


def make_params(cfg, mesh, whole_model):
  """Far from uniform; without a model hidden states of all tokens instead."""
  params = params_lib.init_params(cfg, jax.random.key(0), mesh)
  head = 'embed' if cfg.tied_embeddings else 'lm_head'
  if whole_model:
    params['model'][head] *= 5
    return params
  hidden = np.random.default_rng(1).normal(size=(N * G, T, cfg.width)) * 10
  place = None if mesh is None else mesh_lib.rows(mesh)
  hidden = jax.device_put(hidden.astype('float32'), place)
  return {'model': {head: params['model'][head]}, 'hidden': hidden}


def scored(cfg, mesh, whole_model):
  """(gradients, statistics, the program) of random responses."""

  def loss(params, traj):
    stats = statistics.token_statistics(
      Forward(model=cfg, temperature=0.7), params, traj, NEEDS
    )
    # Another weight for every token and statistic.
    weight_BT = jnp.sin(jnp.arange(N * G * T, dtype=jnp.float32)).reshape(-1, T)
    parts = [
      (i + 1) * weight_BT * stats[statistics.name_of(need)]
      for i, need in enumerate(NEEDS)
    ]
    return sum(parts).sum(), stats

  rng = np.random.default_rng(0)
  traj = decoding.start_trajectories(
    rng.integers(0, V, (N, P)),
    np.ones((N, P)),
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )
  on_BT = jnp.asarray(np.arange(T) < rng.integers(1, T + 1, (N * G, 1)))
  traj = traj.replace(
    response_BT=jnp.asarray(rng.integers(0, V, (N * G, T)), jnp.int32),
    kind_BT=jnp.where(on_BT, types.POLICY, types.PAD),
    mask_BT=on_BT.astype(jnp.float32),
  )
  if mesh is not None:
    traj = jax.device_put(traj, mesh_lib.rows(mesh))
  params = make_params(cfg, mesh, whole_model)
  program = jax.jit(jax.grad(loss, has_aux=True)).lower(params, traj).compile()
  return *jax.device_get(program(params, traj)), program.as_text()


@pytest.mark.parametrize(
  ('shape', 'tied', 'chunk', 'whole_model'),
  [
    ((2, 2, 2), True, 1 << 24, False),
    ((1, 1, 8), False, 8 * V, True),
    ((1, 2, 4), True, 4 * V, True),
  ],
)
def test_no_device_holds_whole_logits(
  tiny, monkeypatch, shape, tied, chunk, whole_model
):
  """E1 for statistics and gradients; no axis of V in the compiled program.

  chunk: elements of a chunk of logits; a small one makes several.
  """
  if not whole_model:

    def forward(params, *_):
      return params['hidden']

    monkeypatch.setattr(statistics.transformer, 'forward', forward)
  cfg, mesh = make_model(tied_embeddings=tied), make_mesh(shape)
  monkeypatch.setattr(statistics, 'CHUNK_ELEMENTS', chunk)
  one_grads, one_stats, text = scored(cfg, None, whole_model)
  assert V in vocabulary_axes(text)  # what the search looks for is found
  with jax.set_mesh(mesh):
    grads, stats, text = scored(cfg, mesh, whole_model)
  assert vocabulary_axes(text) == {V // shape[2]}
  assert one_stats['entropy'].max() > 1.0
  for name in NEEDS:
    np.testing.assert_allclose(
      stats[name], one_stats[name], rtol=1e-5, atol=1e-5, err_msg=name
    )
  assert tiny.relative_gap(grads, one_grads) < 1e-5


def lowered_run(toy, mesh):
  """The stages of a run of 16 prompts; too few tokens for a second width."""
  config = bandit.get_config(toy.get_method('grpo'))
  for path, text in {
    'rollout.num_prompts': '16',
    'rollout.max_prompt_tokens': '16',
    'rollout.max_response_tokens': '16',
    'update.microbatch_prompts': '4',
  }.items():
    config = override(config, path, text)
  return abstract_run.AbstractRun(config, make_model(), mesh).lower()


def test_the_stages_of_a_run_hold_no_whole_logits(toy):
  """`score` and `update` in microbatches, as a run compiles them."""
  lowered = lowered_run(toy, make_mesh((2, 2, 2)))
  for stage in ('score', 'update'):
    text = lowered[stage].compile().as_text()
    assert vocabulary_axes(text) == {V // 2}, stage


def sent_elements(text):
  """Sizes of the vocabulary's arrays that devices send one another."""
  kinds = 'all-gather|all-to-all|all-reduce|reduce-scatter|collective-permute'
  sent = rf'= (.*?) (?:{kinds})'
  shapes = re.findall(r'\[([\d,]+)\]', ' '.join(re.findall(sent, text)))
  sizes = {math.prod(map(int, shape.split(','))) for shape in shapes}
  return {size for size in sizes if size % PRIME == 0}


@pytest.mark.parametrize('greedy', [False, True])
def test_a_token_is_drawn_without_whole_logits(greedy):
  """E2 for tokens; a block has 4 of the 524 tokens of a device."""
  rng = np.random.default_rng(0)
  logits_BV = np.float32(rng.normal(size=(32, V)) * 4)
  uniform_B = rng.random(32, np.float32)
  draw = functools.partial(decoding.sample_token, greedy=greedy)
  one = jax.jit(draw)(logits_BV, uniform_B)
  mesh = make_mesh((2, 2, 2))
  with jax.set_mesh(mesh):
    split = PartitionSpec(mesh_lib.ROW_AXES, 'tensor')
    logits_BV = jax.device_put(logits_BV, NamedSharding(mesh, split))
    uniform_B = jax.device_put(uniform_B, mesh_lib.rows(mesh))
    program = jax.jit(draw).lower(logits_BV, uniform_B).compile()
    found = program(logits_BV, uniform_B)
  np.testing.assert_array_equal(found[0], one[0])
  np.testing.assert_allclose(found[1], one[1], rtol=1e-5, atol=1e-5)
  assert sent_elements(program.as_text()) <= {8 * V // 4}


@pytest.mark.parametrize('shape, block', [((2, 2, 2), 4), ((1, 2, 4), 2)])
def test_generate_sends_no_logits(toy, shape, block):
  """Compiled as in a run: output weights over fsdp, and sums of blocks."""
  text = lowered_run(toy, make_mesh(shape))['generate'].compile().as_text()
  rows = 16 * 8 // (shape[0] * shape[1])
  sums, weights = rows * V // block, 32 * V // shape[2]
  assert sums in sent_elements(text) <= {sums, weights}
