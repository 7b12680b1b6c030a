"""Kept caches: episodes and log-probs of decoding all tokens again."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import turn_decode
from rl_jax.decoding.stop import make_stop
from rl_jax.decoding.turn_decode import Observations
from rl_jax.models import kv_cache, presets
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.runtime.platform import Platform
from rl_jax.types import ENVIRONMENT, FORCED, PAD, POLICY, Turns

CFG = presets.small(
  vocab_size=13, width=24, num_heads=4, head_size=6, mlp_size=40
)
N, G, P, T, TURN, MOST = 3, 2, 4, 24, 4, 5
B = N * G
KEY = jax.random.key(3)
SAMPLING = decoding.SamplingConfig(eos_ids=(2, 3))
FIXED = {'cfg': CFG, 'sampling': SAMPLING, 'turn_tokens': TURN}
BEGIN = jax.jit(functools.partial(turn_decode.begin, **FIXED))
NEXT = jax.jit(functools.partial(turn_decode.turn, **FIXED))
GENERATE = jax.jit(
  functools.partial(decoding.generate, cfg=CFG, max_new_tokens=TURN)
)


@functools.cache
def make_params():
  params = params_lib.init_params(CFG, jax.random.key(0))
  embed = params['model']['embed'] * 20
  return {**params, 'model': {**params['model'], 'embed': embed}}


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


def observations(turn, changed=False):
  """Observations of different lengths, one empty; row 4 ends after the first
  turn.
  """
  rng = np.random.default_rng(turn)
  ids_BO = rng.integers(4, 13, (B, MOST)).astype(np.int32)
  if changed:
    ids_BO[:, 0] = (ids_BO[:, 0] - 3) % 9 + 4
  live_B = np.arange(B) != 4
  length_B = np.array([0, 1, 5, 3, 2, 4], np.int32)
  return Observations(ids_BO=ids_BO, length_B=length_B, live_B=live_B)


def play(turns=3, changed=None, begin=BEGIN, following=NEXT):
  """Episodes with kept caches, and the lengths after each turn."""
  weights, playing = begin(make_params(), empty(), KEY)
  lengths = [np.asarray(playing.rows.length_B)]
  for turn in range(1, turns):
    playing = following(weights, playing, observations(turn, turn == changed))
    lengths.append(np.asarray(playing.rows.length_B))
  return playing.rows, lengths


def again(traj, said):
  """The observations put after the rows, as the program itself does."""
  place_1O = np.arange(MOST)[None]
  new_BO = (place_1O < said.length_B[:, None]) & said.live_B[:, None]
  to_BO = np.where(new_BO, np.asarray(traj.length_B)[:, None] + place_1O, T)
  response, kind = (np.array(x) for x in (traj.response_BT, traj.kind_BT))
  for row, place in zip(*np.nonzero(new_BO), strict=True):
    response[row, to_BO[row, place]] = said.ids_BO[row, place]
    kind[row, to_BO[row, place]] = ENVIRONMENT
  more_B = np.where(said.live_B, said.length_B, 0)
  return traj.replace(
    response_BT=jnp.asarray(response),
    kind_BT=jnp.asarray(kind),
    length_B=traj.length_B + more_B,
    finished_B=jnp.asarray(~said.live_B),
  )


def test_kept_caches_play_as_decoding_all_again_does():
  """E2: three turns; rows draw at other times, and one stays for later."""
  rows, _ = play()
  traj = GENERATE(make_params(), traj=empty(), key=KEY, sampling=SAMPLING)
  for turn in (1, 2):
    traj = again(traj, observations(turn))
    traj = GENERATE(make_params(), traj=traj, key=KEY, sampling=SAMPLING)
  np.testing.assert_array_equal(rows.response_BT, traj.response_BT)
  np.testing.assert_array_equal(rows.kind_BT, traj.kind_BT)
  np.testing.assert_array_equal(rows.length_B, traj.length_B)
  np.testing.assert_allclose(rows.logp_BT, traj.logp_behaviour_BT, atol=1e-5)
  kinds = np.asarray(rows.kind_BT)
  assert (kinds == ENVIRONMENT).any() and (kinds[4] != ENVIRONMENT).all()


def test_log_probs_are_those_of_the_whole_context():
  """Teacher forcing, every token of the policy; gap below 1e-4."""
  rows, _ = play()
  traj = empty()
  hidden = models.forward(
    make_params(),
    CFG,
    traj.prompt_NP,
    traj.prompt_mask_NP,
    rows.response_BT,
    (rows.kind_BT != PAD).astype(jnp.float32),
  )
  logp = jax.nn.log_softmax(models.logits(make_params(), CFG, hidden))
  logp_BT = jnp.take_along_axis(logp, rows.response_BT[..., None], -1)[..., 0]
  mine_BT = np.asarray(rows.kind_BT) == POLICY
  gap_BT = np.abs(np.asarray(logp_BT - rows.logp_BT))
  assert mine_BT.sum() > 2 * B and gap_BT[mine_BT].max() < 1e-4
  assert (np.asarray(rows.logp_BT)[~mine_BT] == 0).all()


def test_blocks_of_the_cache_change_no_token(monkeypatch):
  """E2: four blocks of 6 columns, filled by rows at different tokens."""
  rows, _ = play()
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', 6)
  assert kv_cache.turn_blocks(T, Platform()) == (4, 6)
  made = [
    jax.jit(functools.partial(function, **FIXED))
    for function in (turn_decode.begin, turn_decode.turn)
  ]
  split, _ = play(begin=made[0], following=made[1])
  np.testing.assert_array_equal(rows.response_BT, split.response_BT)
  np.testing.assert_allclose(rows.logp_BT, split.logp_BT, atol=1e-5)
  assert np.asarray(rows.length_B).max() > 12


@pytest.mark.parametrize('least', [6, 32])
def test_observations_fed_at_once_change_no_token(monkeypatch, least):
  """E2: two tokens at a time, in one block of columns and across four; rows
  have other numbers of tokens left."""
  rows, _ = play(turns=4)
  monkeypatch.setattr(turn_decode, 'FED', 2)
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', least)
  made = [
    jax.jit(functools.partial(function, **FIXED))
    for function in (turn_decode.begin, turn_decode.turn)
  ]
  fed, _ = play(turns=4, begin=made[0], following=made[1])
  for name in ('response_BT', 'kind_BT', 'length_B'):
    np.testing.assert_array_equal(getattr(rows, name), getattr(fed, name))
  np.testing.assert_allclose(rows.logp_BT, fed.logp_BT, atol=1e-5)


@pytest.mark.parametrize('changed', [1, 2])
def test_an_observation_changes_what_follows_it_alone(changed):
  """E0 before it; a token of every observation is another one."""
  rows, lengths = play()
  other, _ = play(changed=changed)
  said = observations(changed)
  for row in range(B):
    before = lengths[changed - 1][row]
    for name in ('response_BT', 'logp_BT'):
      x, y = (np.asarray(getattr(r, name))[row] for r in (rows, other))
      np.testing.assert_array_equal(x[:before], y[:before])
    heard = said.live_B[row] and said.length_B[row] > 0
    after = before + said.length_B[row]
    same = np.array_equal(
      np.asarray(rows.logp_BT)[row, after:],
      np.asarray(other.logp_BT)[row, after:],
    )
    assert same != heard


def test_limits_of_turns_and_of_rows_hold():
  """A turn ends at its own limit; the last one is drawn up to T."""
  weights, playing = BEGIN(make_params(), empty(), KEY)
  full_B = np.zeros(B, bool)
  for turn in range(1, 12):
    before_B = np.asarray(playing.rows.length_B)
    said = observations(turn)
    live_B = said.live_B & (before_B + said.length_B < T)
    playing = NEXT(weights, playing, said.replace(live_B=live_B))
    after_B = np.asarray(playing.rows.length_B)
    new_B = after_B - before_B - np.where(live_B, said.length_B, 0)
    assert ((new_B >= 1) == live_B).all() and (new_B <= TURN).all()
    full_B |= after_B == T
  rows = playing.rows
  ids, kinds = np.asarray(rows.response_BT), np.asarray(rows.kind_BT)
  assert (ids[kinds == PAD] == 0).all() and full_B.any()


def test_the_first_call_is_where_its_turn_begins():
  """After its observation, in turn 1 of row 0; row 1 calls at once; others
  not, though the first turn of row 2 has calls that were never played."""
  kind, turn = np.full((B, T), PAD), np.full((B, T), -1)
  kind[:2, :4] = POLICY, POLICY, ENVIRONMENT, POLICY
  turn[:2, :4] = 0, 0, 1, 1
  zeros = np.zeros((B, T), np.int32)
  rows = SimpleNamespace(
    kind_BT=kind, response_BT=zeros, logp_BT=zeros, length_B=zeros[:, 0]
  )
  calls = np.zeros((B, 2), np.int32)
  calls[:3] = [0, 2], [1, 1], [3, 0]
  turns = Turns(
    reward_BK=calls, state_BK=calls, action_BK=calls, calls_BK=calls
  )
  traj = turn_decode.finish(
    empty(), SimpleNamespace(rows=rows), zeros[:, 0] > 0, turn, turns
  )
  np.testing.assert_array_equal(
    traj.extras['first_call_B'], [3, 0, -1, -1, -1, -1]
  )


def test_a_stop_text_may_begin_in_given_tokens_of_the_turn():
  """'ab' after 'a' that was put there, not after 'a' of an observation."""
  tokenizer = CharTokenizer('abcdefghijk')
  stop = make_stop(tokenizer, ('ab',))
  a, b = tokenizer.encode('ab')
  for last, ends in ((FORCED, True), (ENVIRONMENT, False)):
    kind_T = np.array([POLICY, ENVIRONMENT, last] + [PAD] * (T - 3))
    turn_T = np.where(kind_T == PAD, -1, np.arange(T) > 0)
    ids_T = np.where(np.arange(T) == 2, a, 7) * (kind_T != PAD)

    def same(x_T):
      return jnp.tile(jnp.asarray(x_T, jnp.int32), (64, 1))

    traj = decoding.start_trajectories(
      np.full((1, P), 5),
      np.ones((1, P)),
      np.arange(1),
      group_size=64,
      max_response_tokens=T,
    ).replace(
      response_BT=same(ids_T),
      kind_BT=same(kind_T),
      turn_BT=same(turn_T),
      length_B=jnp.full(64, 3, jnp.int32),
    )
    fixed = {**FIXED, 'sampling': decoding.SamplingConfig.ended_by(stop)}
    begin = jax.jit(functools.partial(turn_decode.begin, **fixed))
    flat = params_lib.init_params(CFG, jax.random.key(0))
    _, playing = begin(flat, traj, KEY)
    rows = jax.device_get((playing.rows.response_BT, playing.rows.length_B))
    at_once = rows[0][:, 3] == b
    assert at_once.sum() > 1
    assert (rows[1][at_once] == 4).all() == ends
