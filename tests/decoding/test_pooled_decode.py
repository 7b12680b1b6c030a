"""Rows that share blocks of keys and values draw the same tokens (E2)."""

import functools

import jax
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode
from rl_jax.decoding import slots as decode_slots
from rl_jax.models import block_pool, presets
from rl_jax.models import params as params_lib

CFG = presets.small(
  vocab_size=17, num_layers=1, width=16, num_heads=4, head_size=4, mlp_size=24
)
N, G, P, T = 8, 8, 5, 40
SAMPLING = decoding.SamplingConfig(eos_ids=(2,))


def generated(cfg=CFG, **options):
  """Responses to eight prompts, of which two are padded."""
  rng = np.random.default_rng(5)
  mask_NP = np.ones((N, P))
  mask_NP[1:3, :2] = 0
  traj = decoding.start_trajectories(
    rng.integers(4, cfg.vocab_size, (N, P)),
    mask_NP,
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )
  params = params_lib.init_params(cfg, jax.random.key(0))
  generate = jax.jit(
    lambda params: decoding.generate(
      params,
      cfg,
      traj,
      jax.random.key(1),
      SAMPLING,
      max_new_tokens=T,
      **options,
    )
  )
  return generate(params)


@pytest.fixture(name='plain', scope='module')
def fixture_plain():
  """Without a pool."""
  return generated()


def assert_same(found, expected):
  """E2 for tokens, 1e-5 nats for their log-probs."""
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  np.testing.assert_allclose(
    found.logp_behaviour_BT, expected.logp_behaviour_BT, atol=1e-5
  )


@pytest.mark.parametrize(
  ('slots', 'tokens', 'widths'),
  [
    (None, 240, [64, 24, 8]),
    (16, 1, [16, 8]),  # room for one whole response only
    pytest.param(None, 10_000, [64], marks=pytest.mark.slow),  # for all
    pytest.param(13, 100, [13, 7], marks=pytest.mark.slow),
  ],
)
def test_a_shared_pool_changes_no_token(
  monkeypatch, plain, slots, tokens, widths
):
  """Rows wait for blocks, and take them of rows that have ended."""
  assert plain.length_B.sum() > 2 * tokens or tokens == 10_000
  monkeypatch.setattr(block_pool, 'BLOCK', 8)
  monkeypatch.setattr(decode, 'batch_widths', lambda *_: widths)
  # With slots each row has its prompt to itself.
  monkeypatch.setattr(decode_slots, 'MOST_PLACES', 2 if slots else 64)
  assert_same(generated(slots=slots, cache_tokens=tokens), plain)


@pytest.mark.slow
def test_layers_with_a_window(monkeypatch):
  """E2: ages of tokens are those in their rows."""
  cfg = functools.partial(models.ModelConfig, num_layers=2, window=9)
  cfg = cfg(
    **{
      name: getattr(CFG, name)
      for name in ('vocab_size', 'width', 'num_heads', 'num_kv_heads')
    },
    head_size=4,
    mlp_size=24,
    windowed=(0,),
    attention_cap=5.0,
  )
  expected = generated(cfg)
  monkeypatch.setattr(block_pool, 'BLOCK', 8)
  assert_same(generated(cfg, slots=16, cache_tokens=160), expected)
