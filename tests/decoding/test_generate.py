"""Generation: exactness, stopping, continuing and its counters."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.types import ENVIRONMENT, PAD, POLICY

CFG = presets.small(
  vocab_size=13, width=24, num_heads=4, head_size=6, mlp_size=40, qkv_bias=True
)
N, G, P, T = 3, 4, 5, 7
KEY = jax.random.key(11)
EOS = decoding.SamplingConfig(eos_ids=(2, 3))
GENERATE = jax.jit(decoding.generate, static_argnames=('cfg', 'max_new_tokens'))


FORWARD = jax.jit(models.forward, static_argnums=1)


@functools.cache
def make_params(cfg=CFG):
  """Large embeddings, so that the distributions are far from uniform."""
  params = params_lib.init_params(cfg, jax.random.key(0))
  embed = params['model']['embed'] * 20
  return {**params, 'model': {**params['model'], 'embed': embed}}


def make_traj(num_prompts=N, group_size=G, prompt=P, response=T, serial=0):
  rng = np.random.default_rng(5)
  prompt_NP = rng.integers(4, 13, (num_prompts, prompt))
  mask_NP = np.ones((num_prompts, prompt))
  mask_NP[1:2, :2] = 0
  return decoding.start_trajectories(
    prompt_NP,
    mask_NP,
    np.arange(num_prompts),
    group_size=group_size,
    max_response_tokens=response,
    first_serial=serial,
  )


def run(traj, sampling=EOS, max_new_tokens=T, cfg=CFG):
  return GENERATE(
    make_params(cfg), cfg, traj, KEY, sampling, max_new_tokens=max_new_tokens
  )


def logp_of(out, sampling, cfg=CFG):
  """Log-probs of the response from the training forward."""
  hidden = FORWARD(
    make_params(cfg),
    cfg,
    out.prompt_NP,
    out.prompt_mask_NP,
    out.response_BT,
    (out.kind_BT != PAD).astype(jnp.float32),
  )
  logits = models.logits(make_params(cfg), cfg, hidden)
  flat = sampling.transform(logits.reshape(-1, cfg.vocab_size))
  logp = jax.nn.log_softmax(flat.reshape(logits.shape))
  return jnp.take_along_axis(logp, out.response_BT[..., None], -1)[..., 0]


def assert_same_rows(out, expected, rows, tokens=T):
  """E2: rows of out are `rows` of expected, up to its first `tokens`."""
  for name in ('response_BT', 'kind_BT', 'mask_BT'):
    np.testing.assert_array_equal(
      getattr(out, name)[:, :tokens], getattr(expected, name)[rows, :tokens]
    )
  np.testing.assert_allclose(
    out.logp_behaviour_BT[:, :tokens],
    expected.logp_behaviour_BT[rows, :tokens],
    atol=1e-5,
  )


def replace_rows(traj, **fields):
  return traj.replace(**{k: jnp.asarray(v) for k, v in fields.items()})


def test_the_record_is_consistent():
  """EOS is part of the response, and nothing lies after it."""
  out = run(make_traj())
  ended, cut = 0, 0
  for b in range(N * G):
    length, row = int(out.length_B[b]), np.asarray(out.response_BT[b])
    is_eos = np.isin(row[:length], (2, 3))
    assert not is_eos[:-1].any()
    assert bool(out.finished_B[b]) == bool(is_eos[-1])
    assert is_eos[-1] or length == T
    ended, cut = ended + is_eos[-1], cut + (not is_eos[-1])
    np.testing.assert_array_equal(row[length:], 0)
    real = np.arange(T) < length
    np.testing.assert_array_equal(out.kind_BT[b], np.where(real, POLICY, PAD))
    np.testing.assert_array_equal(out.mask_BT[b], real)
    np.testing.assert_array_equal(out.logp_behaviour_BT[b, length:], 0)
  assert ended and cut, 'the case must contain both kinds of rows'
  # Samples of one prompt differ, and so do groups.
  assert len(np.unique(np.asarray(out.response_BT), axis=0)) > N * G // 2


@pytest.mark.parametrize(
  'sampling',
  [
    EOS,
    EOS.replace(temperature=0.7),
    EOS.replace(transforms=(decoding.TopP(p=0.8),)),
    EOS.replace(greedy=True),
  ],
)
def test_behaviour_logp_equals_the_forward(sampling):
  """Sampler and trainer: below 1e-4, transforms replayed."""
  out = run(make_traj(), sampling)
  gap = (logp_of(out, sampling) - out.logp_behaviour_BT) * out.mask_BT
  assert float(jnp.abs(gap).max()) < 1e-4


def test_slices_of_layers_share_code():
  """XLA has not evaluated the sort that hides the layers' numbers from it."""
  unstacked = jax.jit(models.decoding_weights, static_argnums=1)
  assert ' sort(' in unstacked.lower(make_params(), CFG).compile().as_text()


def test_lora_reaches_the_sampler():
  """Adapters that are not zero change the draws as they change forward."""
  cfg = dataclasses.replace(CFG, lora_rank=2, value_head=True)
  params = make_params(cfg)
  params['lora'] = jax.tree.map(lambda x: x + 0.1, params['lora'])
  out = run(make_traj(), EOS, cfg=cfg)
  gap = (logp_of(out, EOS, cfg) - out.logp_behaviour_BT) * out.mask_BT
  assert float(jnp.abs(gap).max()) < 1e-4
  assert (out.response_BT != run(make_traj()).response_BT).any()


def test_tokens_of_a_row_do_not_depend_on_the_batch():
  """E2: each group only, and all groups in another order."""
  expected = run(make_traj())
  traj = make_traj()
  groups = np.array([2, 0, 1])
  rows = (groups[:, None] * G + np.arange(G)[None]).ravel()

  def pick(groups, rows):
    fields = {}
    for field in dataclasses.fields(traj):
      value = getattr(traj, field.name)
      if isinstance(value, jax.Array):
        fields[field.name] = value[
          groups if field.name.endswith(('_N', '_NP')) else rows
        ]
    return traj.replace(**fields)

  assert_same_rows(run(pick(groups, rows)), expected, rows)
  one = np.arange(G, 2 * G)
  assert_same_rows(run(pick(np.array([1]), one)), expected, one)
  single = replace_rows(make_traj(1, 1), row_id_B2=traj.row_id_B2[:1])
  assert_same_rows(run(single), expected, np.array([0]))


def test_padding_does_not_change_the_tokens():
  """E2: longer left padding and more room for the response."""
  expected = run(make_traj())
  traj = make_traj(response=T + 3)
  left = ((0, 0), (4, 0))
  traj = replace_rows(
    traj,
    prompt_NP=np.pad(traj.prompt_NP, left),
    prompt_mask_NP=np.pad(traj.prompt_mask_NP, left),
  )
  out = run(traj, max_new_tokens=T)
  assert_same_rows(out, expected, np.arange(N * G))
  np.testing.assert_array_equal(out.response_BT[:, T:], 0)
  np.testing.assert_array_equal(out.length_B, expected.length_B)


def test_another_serial_gives_other_samples():
  """A prompt drawn again in the run gets new numbers."""
  first, second = run(make_traj()), run(make_traj(serial=N))
  assert (first.response_BT != second.response_BT).any()
  assert second.row_id_B2[0].tolist() == [N, 0]


def test_greedy_repeats_itself_within_a_group():
  """All samples of a prompt are the argmax of the forward."""
  sampling = decoding.SamplingConfig(greedy=True)
  out = run(make_traj(), sampling)
  grouped = np.asarray(out.response_BT).reshape(N, G, T)
  np.testing.assert_array_equal(grouped, np.repeat(grouped[:, :1], G, 1))
  hidden = FORWARD(
    make_params(),
    CFG,
    out.prompt_NP,
    out.prompt_mask_NP,
    out.response_BT,
    out.mask_BT,
  )
  logits = models.logits(make_params(), CFG, hidden)
  np.testing.assert_array_equal(logits.argmax(-1), out.response_BT)


def test_a_forced_prefix_continues_as_when_it_was_generated():
  """E2: cut at another place in every row, the same tokens follow."""
  expected = run(make_traj())
  cut_B = np.minimum(np.arange(N * G) % T, expected.length_B - 1)
  kept = np.arange(T)[None] < cut_B[:, None]
  start = replace_rows(
    make_traj(),
    response_BT=np.where(kept, expected.response_BT, 0),
    kind_BT=np.where(kept, expected.kind_BT, PAD),
    logp_behaviour_BT=np.where(kept, expected.logp_behaviour_BT, 0.0),
    length_B=cut_B.astype(np.int32),
  )
  assert_same_rows(run(start), expected, np.arange(N * G))


def test_given_tokens_keep_their_kind_and_limits_count_from_them():
  """Environment tokens stay, and max_new_tokens counts new ones."""
  length_B = np.arange(N * G, dtype=np.int32) % 3
  given = np.arange(T)[None] < length_B[:, None]
  start = replace_rows(
    make_traj(),
    response_BT=np.where(given, 5, 0).astype(np.int32),
    kind_BT=np.where(given, ENVIRONMENT, PAD).astype(np.int32),
    length_B=length_B,
  )
  out = run(start, decoding.SamplingConfig(), max_new_tokens=2)
  np.testing.assert_array_equal(out.length_B, length_B + 2)
  np.testing.assert_array_equal(out.response_BT[given], 5)
  np.testing.assert_array_equal(out.kind_BT[given], ENVIRONMENT)
  np.testing.assert_array_equal(out.mask_BT[given], 0)
  np.testing.assert_array_equal(out.mask_BT.sum(1), np.full(N * G, 2))
  assert not out.finished_B.any()


def test_finished_rows_are_left_alone():
  """E0: a second call changes nothing in rows that ended by themselves."""
  first = run(make_traj(), max_new_tokens=3)
  second = run(first)
  done = np.flatnonzero(first.finished_B)
  assert 0 < len(done) < N * G
  for name in ('response_BT', 'kind_BT', 'length_B', 'logp_behaviour_BT'):
    np.testing.assert_array_equal(
      getattr(first, name)[done], getattr(second, name)[done]
    )
  assert_same_rows(second, run(make_traj()), np.arange(N * G))


@pytest.mark.parametrize(
  'sizes',
  [
    (1, 1, 5, 1),
    pytest.param((3, 1, 1, 2), marks=pytest.mark.slow),
    pytest.param((1, 5, 3, 4), marks=pytest.mark.slow),
  ],
)
def test_small_and_odd_batches(sizes):
  """One row, one token, odd sizes, a prompt of one token."""
  out = run(make_traj(*sizes), max_new_tokens=sizes[-1])
  gap = (logp_of(out, EOS) - out.logp_behaviour_BT) * out.mask_BT
  assert float(jnp.abs(gap).max()) < 1e-4
  assert int(out.length_B.min()) >= 1


def count_decode_steps(monkeypatch, traj, sampling, max_new_tokens):
  """Runs generate with a decode_step that reports each execution."""
  calls = []
  decode_step = models.decode_step

  def counted(*args, **kwargs):
    jax.debug.callback(lambda: calls.append(1))
    return decode_step(*args, **kwargs)

  monkeypatch.setattr(models, 'decode_step', counted)
  out = decoding.generate(
    make_params(), CFG, traj, KEY, sampling, max_new_tokens=max_new_tokens
  )
  jax.effects_barrier()
  return len(calls), out


@pytest.mark.slow
def test_no_decode_step_is_wasted(monkeypatch):
  """The longest row's length minus one: the last token is never fed."""
  for sampling, limit in ((EOS, 3), (decoding.SamplingConfig(), 1)):
    steps, out = count_decode_steps(monkeypatch, make_traj(), sampling, limit)
    monkeypatch.undo()
    assert steps == int(out.length_B.max()) - 1
  every = decoding.SamplingConfig(eos_ids=tuple(range(13)))
  steps, out = count_decode_steps(monkeypatch, make_traj(), every, T)
  assert steps == 0
  assert out.finished_B.all()
