"""Decoding in narrowing batches draws the tokens of the full width (E2)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode
from rl_jax.decoding import slots as decode_slots
from rl_jax.models import kv_cache, presets
from rl_jax.models import params as params_lib
from rl_jax.pieces.logits.lagged_support import LaggedSupport
from rl_jax.runtime.platform import Platform
from rl_jax.types import ENVIRONMENT

CFG = presets.small(
  vocab_size=17, num_layers=1, width=16, num_heads=4, head_size=4, mlp_size=24
)
N, G, P, T = 8, 8, 5, 40
SAMPLING = decoding.SamplingConfig(eos_ids=(2,))


def make_traj():
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


@functools.cache
def make_params():
  return params_lib.init_params(CFG, jax.random.key(0))


def run(monkeypatch, traj, widths, sampling=SAMPLING, slots=None):
  """Generates with the given batch widths; also the width of each step."""
  out, fed = run_with_places(monkeypatch, traj, widths, sampling, slots)
  return out, [width for width, _ in fed]


def run_with_places(monkeypatch, traj, widths, sampling=SAMPLING, slots=None):
  """The same; also (width, places of the cache) of each step."""
  fed = []
  decode_step = models.decode_step

  def counted(params, *, token_B, cache, **kwargs):
    shape = token_B.shape[0], cache.places
    jax.debug.callback(lambda: fed.append(shape))
    return decode_step(params, token_B=token_B, cache=cache, **kwargs)

  with monkeypatch.context() as patched:
    patched.setattr(models, 'decode_step', counted)
    patched.setattr(decode, 'batch_widths', lambda *_: widths)
    # A separate function: jit would find the program of other widths again.
    generate = jax.jit(
      lambda *args: decoding.generate(*args, max_new_tokens=T, slots=slots),
      static_argnums=1,
    )
    out = generate(make_params(), CFG, traj, jax.random.key(1), sampling)
    jax.effects_barrier()
  return out, fed


def assert_same(found, expected):
  """E2 for tokens, 1e-5 nats for their log-probs."""
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B', 'mask_BT'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
  np.testing.assert_allclose(
    found.logp_behaviour_BT, expected.logp_behaviour_BT, atol=1e-5
  )


def test_narrowing_changes_no_token_and_feeds_fewer_rows(monkeypatch):
  traj = make_traj()
  plain, fed_plain = run(monkeypatch, traj, [64])
  found, fed = run(monkeypatch, traj, [64, 24, 8])
  assert_same(found, plain)
  # As many steps; every step as wide as the rows before it need, and no row is
  # fed after its last token.
  lengths = np.asarray(plain.length_B)
  assert fed_plain == [64] * (lengths.max() - 1)
  expected = []
  for step in range(1, lengths.max()):
    going = (lengths > step).sum()
    expected.append(next(w for w in (8, 24, 64) if w >= going))
  assert fed == expected
  assert set(fed) == {64, 24, 8}, 'the case must use every width'


def given_traj():
  """Rows with forced openings, and finished ones."""
  traj = make_traj()
  given = np.arange(N * G) % 3
  return traj.replace(
    response_BT=jnp.where(jnp.arange(T)[None] < given[:, None], 5, 0),
    kind_BT=jnp.where(jnp.arange(T)[None] < given[:, None], ENVIRONMENT, 0),
    length_B=jnp.asarray(given, jnp.int32),
    finished_B=jnp.asarray(np.arange(N * G) % 7 == 3),
  )


@pytest.mark.slow  # narrowing and refill are tested above
def test_rows_that_were_given_tokens_or_are_finished(monkeypatch):
  """Forced openings, finished rows and a width that is not a power of two."""
  traj = given_traj()
  plain, _ = run(monkeypatch, traj, [64])
  found, fed = run(monkeypatch, traj, [64, 37, 19])
  assert_same(found, plain)
  assert len(set(fed)) > 2


def test_a_freed_slot_takes_a_waiting_row(monkeypatch):
  """16 slots for 64 rows, then narrower: same tokens, few idle slots."""
  monkeypatch.setattr(decode_slots, 'MOST_PLACES', 2)  # a prompt for each slot
  traj = make_traj()
  plain, _ = run(monkeypatch, traj, [64])
  found, fed = run(monkeypatch, traj, [16, 8], slots=16)
  assert_same(found, plain)
  assert set(fed) == {16, 8}
  # Two free slots are filled at once, so that one of 16 is idle on average.
  tokens = np.asarray(plain.length_B).sum() - N * G
  assert tokens <= sum(fed) < 1.35 * tokens


@pytest.mark.parametrize('slots, widths', [(1, [1]), (13, [13, 7]), (63, [63])])
@pytest.mark.slow
def test_any_number_of_slots(monkeypatch, slots, widths):
  """Given tokens and finished rows, too: they are done before they begin."""
  traj = given_traj()
  plain, _ = run(monkeypatch, traj, [64])
  found, _ = run(monkeypatch, traj, widths, slots=slots)
  assert_same(found, plain)


@pytest.mark.slow  # narrowing shares them above, refill does not
@pytest.mark.parametrize('slots, widths', [(None, [64, 24, 8]), (16, [16, 8])])
def test_prompts_that_are_shared_or_not(monkeypatch, slots, widths):
  """E2: attention in the places of all rows, or to a prompt for each row."""
  traj, found = make_traj(), {}
  for most in (0, 3, 64):  # rows a place: never, while rows are many, always
    monkeypatch.setattr(decode_slots, 'MOST_PLACES', most)
    found[most], _ = run(monkeypatch, traj, widths, slots=slots)
  assert_same(found[0], found[64])
  assert_same(found[3], found[64])


@pytest.mark.parametrize(
  'slots', [pytest.param(None, marks=pytest.mark.slow), 16]
)
def test_the_second_block_of_the_cache_changes_no_token(monkeypatch, slots):
  """E2: in the middle of the responses, and all around the ring of slots."""
  expected, fed = run(monkeypatch, make_traj(), [64, 24, 8])
  assert int(expected.length_B.max()) > T / 2
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', 8)
  widths = [slots, 8] if slots else [64, 24, 8]
  found, fed_with_blocks = run(monkeypatch, make_traj(), widths, slots=slots)
  assert_same(found, expected)
  if not slots:
    assert fed_with_blocks == fed


@pytest.mark.parametrize(
  ('places', 'widths', 'grows_at'),
  [
    (10, [64, 48, 36, 24], 36),  # in time
    *(
      pytest.param(*case, marks=pytest.mark.slow)
      for case in (
        (10, [64, 48, 32], 48),  # 33 rows when the cache is full
        (10, [64, 8], 64),  # a deep model's, of long responses
        (4, [64, 40, 34, 24], 64),  # more than 40 then
        (10, [64, 56, 50, 8], 50),  # with 33 rows in 50 slots
        (30, [64, 48, 36, 24], 36),  # at 24 rows, before it is full
      )
    ),
  ],
)
def test_a_small_cache_changes_no_token(monkeypatch, places, widths, grows_at):
  """E2: rows begin in it until it is full or few of them are left."""
  plain, _ = run(monkeypatch, make_traj(), [64])
  monkeypatch.setattr(models, 'first_places', lambda _: places)
  monkeypatch.setattr(decode, 'LONG', T)
  found, fed = run_with_places(monkeypatch, make_traj(), widths)
  assert_same(found, plain)
  lengths, expected, small = np.asarray(plain.length_B), [], True
  after = next((w for w in widths if 2 * w < 64), 0)
  for step in range(1, lengths.max()):
    going = (lengths > step).sum()
    width = min(w for w in widths if w >= going)
    small &= step <= places and going > after
    expected.append((width, places if small else T))
  assert fed == expected
  grown = [width for width, place in fed if place == T]
  small = [width for width, place in fed if place == places]
  assert small[-1] == grows_at and grown


@pytest.mark.slow
def test_the_cache_of_a_lagged_policy_grows_too(monkeypatch):
  """E2, against caches that need not grow."""
  params = {**make_params(), 'policies': {'lagged': make_params()}}
  sampling = SAMPLING.replace(transforms=(LaggedSupport(min_tokens=4),))
  traj, found = make_traj(), {}
  for places in (T, 10):
    monkeypatch.setattr(models, 'first_places', lambda _, p=places: p)
    monkeypatch.setattr(decode, 'batch_widths', lambda *_: [64, 48, 36, 8])
    found[places] = decoding.generate(
      params, CFG, traj, jax.random.key(1), sampling, max_new_tokens=T
    )
  assert_same(found[10], found[T])


@pytest.mark.parametrize(
  ('widths', 'rows', 'tokens', 'expected'),
  [
    ([128, 96, 64, 48, 32], 128, 128, [128, 96, 64]),
    ([128, 96, 64, 48, 32], 128, 124, []),  # a quarter is less than 32
    ([128, 96, 64, 48, 32], 256, 128, []),  # the others wait
    ([64, 16], 64, 128, []),
    ([128, 64, 32], 128, 128, []),  # too few to save anything
    ([64, 16], 64, 512, [64]),  # but of long responses
    ([8], 8, 512, []),  # of few rows the weights are most of what is read
  ],
)
def test_wide_widths(widths, rows, tokens, expected):
  assert decode.wide_widths(widths, rows, tokens) == expected


def test_rows_that_all_end_together(monkeypatch):
  """Nothing narrows when the whole batch ends at the last token."""
  endless = decoding.SamplingConfig()
  plain, _ = run(monkeypatch, make_traj(), [64], endless)
  found, fed = run(monkeypatch, make_traj(), [64, 32], endless)
  assert_same(found, plain)
  assert fed == [64] * (T - 1)


def test_without_end_tokens_there_is_one_width(monkeypatch):
  """Rows then last until their limit; a second width would only be compiled."""

  def widths(*_):
    raise LookupError('asked for widths')

  def trace(sampling):
    generate = functools.partial(decoding.generate, max_new_tokens=T)
    key = jax.random.key(1)
    return jax.eval_shape(
      lambda params: generate(params, CFG, make_traj(), key, sampling),
      make_params(),
    )

  monkeypatch.setattr(decode, 'batch_widths', widths)
  assert trace(decoding.SamplingConfig()).response_BT.shape == (N * G, T)
  with pytest.raises(LookupError):
    trace(SAMPLING)


@pytest.mark.parametrize(
  'rows, tokens, layers, expected',
  [
    (128, 128, 8, [128, 96, 64, 48, 32, 24, 16, 8]),
    (80, 128, 8, [80, 64, 48, 32, 24, 16, 8]),
    (256, 128, 8, [256, 192, 96, 64, 48, 32, 16, 8]),  # of ten
    (72, 128, 8, [72, 48, 32, 24, 16, 8]),  # 64 rows save too little
    (20, 128, 8, [20, 16, 8]),
    (22, 128, 8, [22, 16, 8]),
    (15, 128, 8, [15]),
    (256, 8, 8, [256]),
    (256, 128, 30, [256, 64]),
    (256, 128, 80, [256]),
  ],
)
def test_batch_widths(rows, tokens, layers, expected):
  cfg = dataclasses.replace(CFG, num_layers=layers)
  most = decode.most_widths(cfg)
  assert decode.batch_widths(rows, tokens, most) == expected


def test_accelerators_have_few_widths():
  """Each compiles for seconds there, however few the layers."""
  cfg = dataclasses.replace(CFG, platform=Platform('tpu'), num_layers=64)
  assert decode.batch_widths(256, 128, decode.most_widths(cfg)) == [256, 64]


@pytest.mark.parametrize(('layers', 'most'), [(8, 2), (40, 2), (41, 1)])
def test_deep_models_on_gpu_have_one_width(layers, most):
  """Programs hold every layer of each loop there."""
  platform = Platform('cuda', (9, 0))
  cfg = dataclasses.replace(CFG, platform=platform, num_layers=layers)
  assert decode.most_widths(cfg) == most
