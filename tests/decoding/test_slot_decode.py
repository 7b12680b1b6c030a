"""Slots: the tokens of turns in step, whenever a row is chosen, among whom."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.decoding import slot_decode, slot_engine, turn_decode
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.slot_engine import RunningSlots, Widths
from rl_jax.decoding.turn_decode import Observations
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.types import ENVIRONMENT

CFG = presets.small(
  vocab_size=13, width=24, num_heads=4, head_size=6, mlp_size=40
)
N, G, P, T, TURN, MOST = 4, 2, 4, 48, 5, 12
B = N * G
KEY = jax.random.key(3)
SAMPLING = decoding.SamplingConfig(eos_ids=(2, 3))
TURNS = TurnConfig(
  max_turns=4, max_turn_tokens=TURN, max_observation_tokens=MOST
)


@functools.cache
def make_params():
  params = params_lib.init_params(CFG, jax.random.key(0))
  embed = params['model']['embed'] * 20
  return {**params, 'model': {**params['model'], 'embed': embed}}


@functools.cache
def programs(slots=None, limits=TURNS):
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  config = EngineConfig(
    group_size=G,
    max_response_tokens=T,
    turns=limits,
    slots=slots,
  )
  return make_engine(CFG, SAMPLING, config, mesh)


def empty():
  rng = np.random.default_rng(5)
  mask_NP = np.ones((N, P))
  mask_NP[1, :2] = 0
  return decoding.start_trajectories(
    rng.integers(4, 13, (N, P)),
    mask_NP,
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )


def observation(row, turn):
  """Token ids of a row and turn: 0 to MOST of them, none for one of them."""
  rng = np.random.default_rng((row, turn))
  return rng.integers(4, 13, rng.integers(0, MOST + 1)).tolist()


def in_step(turns=3):
  """The rows of turn_decode."""
  fixed = {'cfg': CFG, 'sampling': SAMPLING, 'turn_tokens': TURN}
  begin = jax.jit(functools.partial(turn_decode.begin, **fixed))
  following = jax.jit(functools.partial(turn_decode.turn, **fixed))
  weights, playing = begin(make_params(), empty(), KEY)
  for turn in range(1, turns):
    said = [observation(row, turn) for row in range(B)]
    ids_BO = np.zeros((B, MOST), np.int32)
    for row, ids in enumerate(said):
      ids_BO[row, : len(ids)] = ids
    length_B = np.array(list(map(len, said)), np.int32)
    playing = following(
      weights,
      playing,
      Observations(
        ids_BO=ids_BO,
        length_B=length_B,
        live_B=np.ones(B, bool),
      ),
    )
  return playing.rows


def in_slots(
  choose, turns=3, slots=None, steps=slot_decode.BURST, limits=TURNS
):
  """The rows of RunningSlots, and the tokens that the host has read.

  choose: (rows that have an answer, rows that sample) -> those that do so now.
  """
  made = programs(slots, limits).slots
  made.settle(make_params(), empty(), KEY, MOST)
  assert made.exact
  slots = RunningSlots(made, make_params(), empty(), KEY, MOST)
  ids = {row: [] for row in range(B)}
  turn, answered, going = dict.fromkeys(range(B), 1), [], []

  def read(burst):
    for row, result in burst.read().items():
      ids[row] += result.ids
      if not result.ended:
        going.append(row)
      elif turn[row] < turns:
        answered.append(row)

  read(slots.first)
  while answered or going:
    now, drawn = choose(answered, going)
    for row in now:
      answered.remove(row)
    slots.feed({row: (observation(row, turn[row]), False) for row in now})
    for row in now:
      ids[row] += observation(row, turn[row])
      turn[row] += 1
    going += now
    if drawn := [row for row in drawn if row in going]:
      for row in drawn[: slots.widest]:
        going.remove(row)
      read(slots.sample(drawn, steps))
  return slots.table.rows, ids


def randomly(seed):
  rng = np.random.default_rng(seed)

  def choose(answered, going):
    def some(rows):
      rows = rng.permutation(rows).tolist()
      return rows[: rng.integers(0, len(rows) + 1)]

    now = some(answered)
    return now, some([*going, *now])

  return choose


def at_once(answered, going):
  return list(answered), [*going, *answered]


def one_by_one(answered, going):
  return answered[:1], [*going, *answered[:1]][:1]


NAMES = ('response_BT', 'kind_BT', 'length_B', 'finished_B')


def check_same_tokens(rows, expected):
  """E0 of all but the log-probs, which have E2."""
  for name in NAMES:
    np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))
  np.testing.assert_allclose(rows.logp_BT, expected.logp_BT, atol=1e-5)


def test_the_tokens_are_those_of_turns_in_step():
  """E2: known tokens are fed in other chunks there, by their neighbours."""
  expected, (rows, ids) = in_step(), in_slots(at_once)
  check_same_tokens(rows, expected)
  for row in range(B):
    length = int(expected.length_B[row])
    known = np.asarray(expected.response_BT)[row, :length].tolist()
    assert ids[row] == known
  assert (np.asarray(rows.kind_BT) == ENVIRONMENT).sum() > 4 * B


@pytest.mark.parametrize('choose', [one_by_one, randomly(0), randomly(1)])
@pytest.mark.parametrize('slots', [None, 5, 3])
def test_when_and_among_whom_a_row_is_chosen_changes_nothing(choose, slots):
  """E0, also the log-probs: other slots, neighbours, orders of answers."""
  (expected, _), (rows, _) = (
    in_slots(at_once, slots=slots),
    in_slots(choose, slots=slots),
  )
  for name in (*NAMES, 'logp_BT'):
    np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))
  check_same_tokens(rows, in_slots(at_once)[0])


@pytest.mark.parametrize('choose', [one_by_one, randomly(0), randomly(1)])
def test_narrow_calls_change_nothing(choose, monkeypatch):
  """E0: calls of eight, four or two rows, whichever hold those that sample."""
  monkeypatch.setattr(slot_engine, 'FEWEST', 2)
  monkeypatch.setattr(slot_engine, 'MOST_WIDTHS', 3)
  programs.cache_clear()
  expected, _ = in_slots(at_once)
  made, shapes = programs(None, TURNS).slots, set()
  assert made.widths == (8, 4, 2) and made.feeds == (8,)
  sample = made.sample

  def noted(weights, table, chosen_V2):
    shapes.add(len(chosen_V2))
    return sample(weights, table, chosen_V2)

  monkeypatch.setattr(made, 'sample', noted)
  rows, _ = in_slots(choose)
  programs.cache_clear()
  assert 2 in shapes and (choose is one_by_one or len(shapes) == 3)
  for name in (*NAMES, 'logp_BT'):
    np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))


def test_a_burst_lasts_while_all_rows_go_on():
  """E0: as many steps as are asked for, or up to the end of the first turn."""
  limits = dataclasses.replace(TURNS, max_turn_tokens=20)
  short, _ = in_slots(at_once, limits=limits)
  found, _ = in_slots(at_once, limits=limits, steps=slot_decode.LONGEST)
  for name in (*NAMES, 'logp_BT'):
    np.testing.assert_array_equal(getattr(found, name), getattr(short, name))
  made = programs(None, limits).slots
  slots = RunningSlots(made, make_params(), empty(), KEY, MOST)
  going = [row for row, one in slots.first.read().items() if not one.ended]
  left = {}  # tokens of the turn: a burst of one row has all of them
  for row in going:
    (alone,) = slots.sample([row], slot_decode.LONGEST).read().values()
    assert alone.ended
    left[row] = len(alone.ids)
  longest, shortest = max(going, key=left.get), min(going, key=left.get)
  assert left[longest] > slot_decode.BURST > left[shortest]
  slots = RunningSlots(made, make_params(), empty(), KEY, MOST)
  both = slots.sample([longest, shortest], slot_decode.LONGEST).read()
  assert len(both[longest].ids) == slot_decode.BURST
  assert len(both[shortest].ids) == left[shortest]


@pytest.mark.parametrize('chunk', [1, 5])
def test_other_chunks_change_no_token(chunk, monkeypatch):
  """E0 of the tokens, E2 of the log-probs: products of other shapes."""
  monkeypatch.setattr(slot_engine, 'FEED', chunk)
  programs.cache_clear()
  expected, (rows, _) = in_step(), in_slots(randomly(3))
  programs.cache_clear()
  check_same_tokens(rows, expected)


def test_the_widths_of_slots_by_hand():
  """A half or a quarter each, not below eight; eight rows are fed, or 32."""
  halves, quarters = Widths(3, 2, 32), Widths(2, 4, 8)
  assert halves.slots(256, None, 1) == (256, 128, 64)
  assert halves.slots(128, 64, 2) == (32, 16, 8)
  assert quarters.slots(128, 64, 2) == (32, 8)
  assert quarters.slots(31, None, 1) == (31,)
  assert halves.slots(15, None, 1) == (15,)
  assert Widths(1, 2, 32).slots(64, 16, 1) == (16,)
  assert halves.slots(8, 1, 2) == (1,)
  assert halves.feeds(256) == halves.feeds(32) == (32, 8)
  assert halves.feeds(16) == (16, 8) and halves.feeds(5) == (5,)
  assert quarters.feeds(256) == (8,)


def test_the_widths_of_a_platform():
  """Halves on CPU, where a model is not too deep; else those of before."""
  assert Widths.of(CFG) == (2, 2, 32)
  assert Widths.of(dataclasses.replace(CFG, num_layers=64)) == (1, 4, 8)
  tpu = dataclasses.replace(CFG, platform=Platform('tpu'))
  assert Widths.of(tpu) == (2, 4, 8)


def test_widths_that_differ_are_not_used(monkeypatch):
  """The probe compares bits; a row that differs by one of them is enough."""
  made = programs().slots
  monkeypatch.setattr(slot_engine, 'FEWEST', 1)
  monkeypatch.setattr(made, 'widths', ())
  monkeypatch.setattr(made, 'limits', Widths(2, 4, slot_engine.FEED_ROWS))
  gap = [0.0]

  def probed(self, rows, traj):
    del rows, traj
    logp_BT = np.zeros((B, T))
    logp_BT[4] = gap[0] * (self.widest < B)
    return np.zeros((B, T)), logp_BT

  monkeypatch.setattr(RunningSlots, 'probed', probed)
  for gap[0], widths in ((1e-6, (B,)), (0.0, (B, B // 4))):
    made.widths = ()
    made.settle(make_params(), empty(), KEY, MOST)
    assert made.widths == widths and made.exact


def test_a_stop_text_and_a_forgotten_context():
  """`feed` resets the one and sets the other, of the fed rows only."""
  made = programs().slots
  made.settle(make_params(), empty(), KEY, MOST)
  slots = RunningSlots(made, make_params(), empty(), KEY, MOST)
  before = np.asarray(slots.table.rows.length_B)
  slots.feed({1: ([5, 6], True), 3: ([7], False)})
  (cache,) = slots.table.caches
  context = np.asarray(cache.context_B)
  assert context[1] == before[1] and not np.delete(context, 1).any()
  assert slot_decode.BURST > TURN


@pytest.mark.parametrize('fed', [1, 3])
def test_few_rows_are_fed_at_a_time(fed, monkeypatch):
  """E0: a call of `feed` has few shapes, however many answers have come.

  Eight rows, too, if that has the bits of the narrow call.
  """
  monkeypatch.setattr(slot_engine, 'FEED_ROWS', fed)
  programs.cache_clear()
  expected, _ = in_slots(at_once)
  made, shapes = programs(None, TURNS).slots, set()
  feed, feeds = made.feed, made.feeds
  assert feeds in ((fed,), (B, fed))

  def noted(weights, table, said_VX):
    shapes.add(said_VX.shape)
    return feed(weights, table, said_VX)

  monkeypatch.setattr(made, 'feed', noted)
  rows, _ = in_slots(randomly(0))
  programs.cache_clear()
  columns = slot_decode.columns(MOST)[0]
  assert (fed, columns) in shapes <= {(n, columns) for n in feeds}
  for name in (*NAMES, 'logp_BT'):
    np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))
