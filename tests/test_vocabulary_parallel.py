"""Scoring with the output weights split over the tensor axis.

The compiler splits the log-softmax by itself: every device computes the logits
of its own part of the vocabulary, and maxima, sums and the taken token's logit
are combined as [rows] numbers. These tests hold it to that.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import bandit
from rl_jax import abstract_run, models, rollouts, scoring, sharding, types
from rl_jax.overrides import override

pytestmark = [pytest.mark.devices, pytest.mark.slow]

# No other size of the programs has this factor.
PRIME = 131
V = 8 * PRIME
N, G, P, T = 8, 2, 5, 6
NEEDS = ('logp', 'entropy', 'self_certainty')


def make_model(**changes):
  """One layer and a vocabulary that the axes divide."""
  sizes = dict(num_layers=1, width=32, num_heads=8, num_kv_heads=8)
  sizes |= dict(vocab_size=V, head_size=8, mlp_size=48)
  return models.ModelConfig(**sizes, **changes)


def make_mesh(shape):
  """Axes data, fsdp, tensor."""
  return sharding.make_mesh(
    sharding.MeshConfig(data=shape[0], fsdp=shape[1], tensor=shape[2])
  )


def vocabulary_axes(text):
  """The sizes of all axes of all arrays of a program that split V."""
  shapes = re.findall(r'\b[a-z]+\d+\[([\d,]+)\]', text)
  sizes = {int(n) for shape in shapes for n in shape.split(',')}
  return {n for n in sizes if n % PRIME == 0}


def make_params(cfg, mesh, whole_model):
  """Far from uniform; without a model hidden states of all tokens instead."""
  params = sharding.init_params(cfg, jax.random.key(0), mesh)
  head = 'embed' if cfg.tied_embeddings else 'lm_head'
  if whole_model:
    params['model'][head] *= 5
    return params
  hidden = np.random.default_rng(1).normal(size=(N * G, T, cfg.width)) * 10
  place = None if mesh is None else sharding.rows(mesh)
  hidden = jax.device_put(hidden.astype('float32'), place)
  return {'model': {head: params['model'][head]}, 'hidden': hidden}


def scored(cfg, mesh, whole_model):
  """(gradients, statistics, the program) of random responses."""

  def loss(params, traj):
    stats = scoring.token_statistics(params, cfg, traj, NEEDS, 0.7)
    # Another weight for every token and statistic.
    weight_BT = jnp.sin(jnp.arange(N * G * T, dtype=jnp.float32)).reshape(-1, T)
    parts = [(i + 1) * weight_BT * stats[name] for i, name in enumerate(NEEDS)]
    return sum(parts).sum(), stats

  rng = np.random.default_rng(0)
  traj = rollouts.start_trajectories(
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
    traj = jax.device_put(traj, sharding.rows(mesh))
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
    forward = lambda params, *_: params['hidden']
    monkeypatch.setattr(scoring.transformer, 'forward', forward)
  cfg, mesh = make_model(tied_embeddings=tied), make_mesh(shape)
  monkeypatch.setattr(scoring, 'CHUNK_ELEMENTS', chunk)
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


def test_the_stages_of_a_run_hold_no_whole_logits(toy):
  """`score` and `update` in microbatches, as a run compiles them.

  `generate` is not asserted: a token is drawn from the whole row of
  probabilities, which is gathered.
  """
  config = bandit.get_config(toy.get_method('grpo'))
  for path, text in {
    'rollout.num_prompts': '16',
    'rollout.max_prompt_tokens': '16',
    'rollout.max_response_tokens': '32',
    'update.microbatch_prompts': '4',
  }.items():
    config = override(config, path, text)
  run = abstract_run.AbstractRun(config, make_model(), make_mesh((2, 2, 2)))
  lowered = run.lower()
  for stage in ('score', 'update'):
    text = lowered[stage].compile().as_text()
    assert vocabulary_axes(text) == {V // 2}, stage
