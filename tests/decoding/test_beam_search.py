"""Beam search against all responses, and against greedy decoding."""

import functools
import itertools

import jax
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding.beam_search import beam_search
from rl_jax.models import params as params_lib

N, END = 3, 4
SAMPLING = decoding.SamplingConfig(eos_ids=(END,), greedy=True)
KEY = jax.random.key(0)


def empty(tiny, tokens, rows=slice(None)):
  """Prompts, the second shorter, without responses."""
  rng = np.random.default_rng(1)
  mask_NP = np.ones((N, 3))
  mask_NP[1, :2] = 0
  prompt_NP = rng.integers(5, tiny.CFG.vocab_size, (N, 3))
  return decoding.start_trajectories(
    prompt_NP[rows],
    mask_NP[rows],
    np.arange(N)[rows],
    group_size=1,
    max_response_tokens=tokens,
  )


@functools.cache
def search(cfg, beams, tokens, sampling=SAMPLING):
  return jax.jit(
    lambda params, traj: beam_search(
      params, cfg, traj, KEY, sampling, max_new_tokens=tokens, beams=beams
    )
  )


def scores(tiny, params, traj, every):
  """Log-probs of all tokens after all prefixes, [rows, T, V]."""

  @jax.jit
  def compute(params):
    hidden = models.forward(
      params,
      tiny.CFG,
      traj.prompt_NP,
      traj.prompt_mask_NP,
      np.tile(every, (N, 1)),
      np.ones((N * len(every), every.shape[1])),
    )
    weights = models.decoding_weights(params, tiny.CFG)
    return jax.nn.log_softmax(models.logits(weights, tiny.CFG, hidden))

  return np.asarray(compute(params))


def test_as_wide_as_the_vocabulary_is_exhaustive(tiny):
  """E1: of 1 + 10 * 11 responses of two tokens at most, scored by the trainer.

  The likeliest first token begins none of the best ones of this model.
  """
  cfg, params = tiny.CFG, tiny.params(0)
  V = cfg.vocab_size
  traj = empty(tiny, 2)
  found = jax.device_get(search(cfg, V, 2)(params, traj))
  every = np.array(list(itertools.product(range(V), repeat=2)), np.int32)
  logp = scores(tiny, params, traj, every).reshape(N, V * V, 2, V)
  logp = np.take_along_axis(logp, every[None, :, :, None], axis=3)[..., 0]
  ended = every[:, 0] == END
  total = logp[:, :, 0] + np.where(ended, 0.0, logp[:, :, 1])
  best = every[total.argmax(1)]
  np.testing.assert_allclose(
    found.logp_behaviour_BT.sum(1), total.max(1), rtol=1e-5
  )
  for row in range(N):
    length = found.length_B[row]
    assert length == (1 if best[row, 0] == END else 2)
    np.testing.assert_array_equal(
      found.response_BT[row, :length], best[row, :length]
    )
    assert found.finished_B[row] == (best[row, length - 1] == END)
  greedy = logp[:, ::V, 0].argmax(1)
  assert (greedy != best[:, 0]).all()


@pytest.mark.slow
def test_one_beam_is_greedy(tiny):
  """E0 tokens; E1 log-probs."""
  params, traj = tiny.params(2), empty(tiny, 5)
  found = search(tiny.CFG, 1, 5)(params, traj)
  greedy = jax.jit(
    lambda params, traj: decoding.generate(
      params, tiny.CFG, traj, KEY, SAMPLING, max_new_tokens=5
    )
  )(params, traj)
  for name in ('response_BT', 'length_B', 'finished_B', 'kind_BT', 'mask_BT'):
    np.testing.assert_array_equal(getattr(found, name), getattr(greedy, name))
  np.testing.assert_allclose(
    found.logp_behaviour_BT, greedy.logp_behaviour_BT, rtol=1e-5, atol=1e-6
  )


def test_long_responses_keep_their_digits():
  """E0 tokens; log-probs of 400 tokens whose sum is about -1000."""
  cfg = models.ModelConfig(
    vocab_size=13,
    num_layers=1,
    width=8,
    num_heads=1,
    num_kv_heads=1,
    head_size=8,
    mlp_size=8,
  )
  params = params_lib.init_params(cfg, KEY)
  traj = decoding.start_trajectories(
    np.arange(8).reshape(4, 2),
    np.ones((4, 2)),
    np.arange(4),
    group_size=1,
    max_response_tokens=400,
  )
  sampling = decoding.SamplingConfig(greedy=True)
  found = search(cfg, 1, 400, sampling)(params, traj)
  greedy = jax.jit(
    lambda params, traj: decoding.generate(
      params, cfg, traj, KEY, sampling, max_new_tokens=400
    )
  )(params, traj)
  assert greedy.logp_behaviour_BT.sum(axis=1).max() < -900
  np.testing.assert_array_equal(found.response_BT, greedy.response_BT)
  np.testing.assert_allclose(
    found.logp_behaviour_BT, greedy.logp_behaviour_BT, atol=1e-5
  )


@pytest.mark.slow
def test_prompts_do_not_see_each_other(tiny):
  """E0: one that ends early continues unchanged while others search."""
  params = tiny.params(2)
  whole = search(tiny.CFG, 3, 5)(params, empty(tiny, 5))
  for row in range(N):
    alone = search(tiny.CFG, 3, 5)(params, empty(tiny, 5, slice(row, row + 1)))
    np.testing.assert_array_equal(alone.response_BT[0], whole.response_BT[row])


def test_groups_are_refused(tiny):
  """With the reason."""
  traj = empty(tiny, 2).replace(group_size=2)
  with pytest.raises(ValueError, match='one row a prompt'):
    search(tiny.CFG, 2, 2)(tiny.params(), traj)
