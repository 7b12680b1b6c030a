"""A scan over stacked layers, as on TPU, draws the tokens of separate layers.

E2: the same tokens, and log-probs within 1e-5 nats.
"""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode, turn_decode
from rl_jax.decoding.beam_search import beam_search
from rl_jax.decoding.drafts.settings import PromptLookup
from rl_jax.decoding.drafts.speculative import (
  DraftSource,
  Kept,
  generate_with_drafts,
)
from rl_jax.decoding.generate import Limits, filled
from rl_jax.decoding.turn_decode import Observations
from rl_jax.models import decode_attention, experts, presets, ragged_products
from rl_jax.models import params as params_lib
from rl_jax.runtime.platform import Platform

CFG = presets.small(
  vocab_size=17, num_layers=3, width=16, num_heads=4, head_size=4, mlp_size=24
)
WINDOWED = dataclasses.replace(CFG, window=3, windowed=(0, 2))
ADAPTED = dataclasses.replace(CFG, lora_rank=2)
N, G, P, T = 8, 4, 5, 40
KEY = jax.random.key(1)
SAMPLING = decoding.SamplingConfig(eos_ids=(2,), temperature=0.5)


def empty():
  """Eight prompts, of which two are padded."""
  rng = np.random.default_rng(5)
  mask_NP = np.ones((N, P))
  mask_NP[1:3, :2] = 0
  return decoding.start_trajectories(
    rng.integers(4, CFG.vocab_size, (N, P)),
    mask_NP,
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )


def make_params(cfg):
  """Adapters, if there are any, act."""
  params = params_lib.init_params(cfg, jax.random.key(0))
  if 'lora' in params:
    params['lora'] = jax.tree.map(lambda x: x + 0.05, params['lora'])
  return params


def generated(cfg, **options):
  """Plain sampling."""
  run = functools.partial(
    decoding.generate, cfg=cfg, max_new_tokens=T, **options
  )
  return jax.jit(run)(
    make_params(cfg), traj=empty(), key=KEY, sampling=SAMPLING
  )


def drafted(cfg):
  """Blocks of several tokens are fed."""
  run = functools.partial(
    generate_with_drafts,
    cfg=cfg,
    source=DraftSource(PromptLookup(tokens=3, ngram=2)),
    limits=Limits(T, slots=16),
  )
  return jax.jit(
    lambda params: run(
      params, traj=empty(), key=KEY, sampling=SAMPLING, kept=Kept({})
    )
  )(make_params(cfg))[0]


def searched(cfg):
  """Beams exchange their caches."""
  run = functools.partial(beam_search, cfg=cfg, max_new_tokens=T, beams=3)
  traj = empty().replace(group_size=1)
  return jax.jit(run)(make_params(cfg), traj=traj, key=KEY, sampling=SAMPLING)


def played(cfg):
  """Observations are fed to some rows of a kept cache, and to fewer ones."""
  fixed = {'cfg': cfg, 'sampling': SAMPLING, 'turn_tokens': 6}
  begin = jax.jit(functools.partial(turn_decode.begin, **fixed))
  following = jax.jit(functools.partial(turn_decode.turn, **fixed))
  weights, playing = begin(make_params(cfg), empty(), KEY)
  live_B = np.arange(N * G) % 4 != 1
  for turn in range(2):
    rng = np.random.default_rng(turn)
    said = Observations(
      ids_BO=rng.integers(4, 17, (N * G, 5)).astype(np.int32),
      length_B=(np.arange(N * G) % 6).astype(np.int32),
      live_B=live_B,
    )
    playing = following(weights, playing, said)
    live_B = live_B & (np.arange(N * G) < 8)
  return filled(empty(), playing.rows)


@pytest.mark.parametrize(
  ('cfg', 'make'),
  [
    (CFG, generated),
    (WINDOWED, generated),
    (ADAPTED, generated),
    (CFG, functools.partial(generated, slots=8)),
    (CFG, functools.partial(generated, cache_tokens=240)),
    (CFG, drafted),
    (CFG, searched),
    (CFG, played),
  ],
)
def test_a_scan_changes_no_token(monkeypatch, cfg, make):
  """With narrowing, a cache that grows, waiting rows, pools and blocks."""
  monkeypatch.setattr(decode, 'most_widths', lambda _: 3)
  on_tpu = dataclasses.replace(cfg, platform=Platform('tpu'))
  found, expected = make(on_tpu), make(cfg)
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  logp = 'logp_behaviour_BT'
  np.testing.assert_allclose(
    getattr(found, logp), getattr(expected, logp), atol=1e-5
  )


ROUTED = dataclasses.replace(
  ADAPTED, num_experts=4, experts_per_token=2, expert_products=experts.CHOSEN
)


@pytest.mark.parametrize(
  'make',
  [
    generated,
    played,
    pytest.param(functools.partial(generated, slots=8), marks=pytest.mark.slow),
    pytest.param(
      functools.partial(generated, cache_tokens=240), marks=pytest.mark.slow
    ),
    pytest.param(drafted, marks=pytest.mark.slow),
  ],
)
def test_a_scan_on_gpu_reads_experts_in_place(monkeypatch, make):
  """All kernels are interpreted; other models have their layers apart."""
  expected = make(ROUTED)
  monkeypatch.setattr(decode_attention, 'runs', lambda _: True)
  monkeypatch.setattr(
    experts, 'in_place', lambda cfg: cfg.num_experts > 0 and cfg.platform.is_gpu
  )
  monkeypatch.setitem(
    decode_attention.KERNELS,
    'cuda',
    functools.partial(decode_attention.on_gpu, interpret=True),
  )
  monkeypatch.setattr(
    ragged_products,
    'product_of_layer',
    functools.partial(ragged_products.product_of_layer, interpret=True),
  )
  platform = Platform('cuda', (9, 0))
  on_gpu = dataclasses.replace(ROUTED, platform=platform)
  assert models.scans_layers(on_gpu)
  assert not models.scans_layers(dataclasses.replace(CFG, platform=platform))
  found = make(on_gpu)
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  logp = 'logp_behaviour_BT'
  np.testing.assert_allclose(
    getattr(found, logp), getattr(expected, logp), atol=1e-5
  )


def test_the_weights_are_stacked_or_apart():
  """So that the test above compares two programs."""
  params = make_params(CFG)
  apart = models.decoding_weights(params, CFG)['layers']
  assert isinstance(apart, tuple) and len(apart) == 3
  on_tpu = dataclasses.replace(CFG, platform=Platform('tpu'))
  stacked = models.decoding_weights(params, on_tpu)['layers']
  assert {x.shape[0] for x in jax.tree.leaves(stacked)} == {3}


CAPPED = dataclasses.replace(WINDOWED, attention_cap=2.0)
GROUPED = dataclasses.replace(CFG, num_kv_heads=2)


@pytest.mark.parametrize(
  'platform', [Platform('tpu'), Platform('cuda', (9, 0))], ids=lambda p: p.name
)
@pytest.mark.parametrize(
  ('cfg', 'make'),
  [
    (CFG, generated),
    (GROUPED, generated),
    (CAPPED, generated),
    (WINDOWED, functools.partial(generated, slots=8)),
    (CFG, functools.partial(generated, cache_tokens=240)),
    (CFG, searched),
    (CAPPED, played),
  ],
)
def test_kernels_of_decoding_change_no_token(monkeypatch, platform, cfg, make):
  """Interpreted, with blocks of keys of which rows see one or several."""
  expected = make(cfg)
  monkeypatch.setattr(decode, 'most_widths', lambda _: 3)
  monkeypatch.setattr(decode_attention, 'runs', lambda _: True)
  monkeypatch.setattr(decode_attention, 'BLOCK', 16)
  for name, kernel in decode_attention.KERNELS.items():
    interpreted = functools.partial(kernel, interpret=True)
    monkeypatch.setitem(decode_attention.KERNELS, name, interpreted)
  found = make(dataclasses.replace(cfg, platform=platform))
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  logp = 'logp_behaviour_BT'
  np.testing.assert_allclose(
    getattr(found, logp), getattr(expected, logp), atol=1e-5
  )
