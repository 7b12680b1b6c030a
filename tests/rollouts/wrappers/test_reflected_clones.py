"""Clones after a reflection: which, from where, and their probability."""

import dataclasses
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.episodes import turns
from rl_jax.learning import score as score_lib
from rl_jax.method import Method
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.piece import CheckContext
from rl_jax.records.rollout_log import sampling_metrics
from rl_jax.rollouts.clones import texts_with_mu
from rl_jax.rollouts.collect import Collector, Judging, RolloutConfig
from rl_jax.rollouts.rounds import metrics_of
from rl_jax.rollouts.sampler import Sampler
from rl_jax.rollouts.wrappers.reflected_clones import ReflectedClones
from rl_jax.tasks import WithTools
from rl_jax.types import ENVIRONMENT, FORCED, PAD, POLICY
from rl_jax.worlds import Arithmetic, KeyDoor

TEXTS = ('ab', 'ac', 'b')
IDS, MU = texts_with_mu(TEXTS, CharTokenizer('abc'))
# Two turns: one action token, one of observation, two of the answer.
KINDS = np.array([POLICY, ENVIRONMENT, POLICY, POLICY, PAD, PAD])


def rows(toy, **fields):
  """One group of two rows of two turns."""
  traj = toy.trajectories(
    np.tile(KINDS == POLICY, (2, 1)).astype(float), group_size=2
  )
  turn_T = np.array([0, 1, 1, 1, -1, -1])
  given = {
    'kind_BT': jnp.tile(jnp.array(KINDS), (2, 1)),
    'turn_BT': jnp.tile(jnp.array(turn_T), (2, 1)),
    'response_BT': jnp.full((2, 6), 4),
    'length_B': jnp.array([4, 4]),
    'reward_B': jnp.array([0.0, 1.0]),
  }
  return traj.replace(**{**given, **fields})


def mixed(toy, piece, foreign=(0, 0, 0, 0, 0, 0, 0, 0, 0, 1), j=1):
  """Six right rows, three failed, a clone: j tokens, two of text, one."""
  B, T = len(foreign), j + 3
  kind_T = np.array([POLICY] * j + [FORCED, FORCED, POLICY])
  foreign_B = np.array(foreign, np.float32)
  text_BT = (kind_T == FORCED)[None] & (foreign_B[:, None] > 0)
  traj = toy.trajectories(np.ones((B, T)), group_size=B).replace(
    kind_BT=jnp.where(text_BT, FORCED, POLICY),
    reward_B=jnp.array([1.0] * 6 + [0.0] * (B - 6)),
    valid_B=jnp.ones(B),
    extras={'foreign_B': jnp.array(foreign_B)},
  )
  mu_T = jnp.array([0.0] * j + [1.0, 0.5, 0.0])
  mu_BT = jnp.where(text_BT, mu_T, 0.0)
  return jax.jit(piece._mixed)(traj, jnp.full((B, T), -1.0), mu_BT)


def test_the_trie_by_hand():
  """The first token has 1; after 'a' each of 'b', 'c' is half of the texts."""
  np.testing.assert_array_equal(MU, [[1, 0.5], [1, 0.5], [1, 0]])
  assert IDS[0, 0] == IDS[1, 0] != IDS[2, 0] and IDS[0, 1] != IDS[1, 1]


def test_the_mixture_by_hand(toy):
  """alpha = .1, e = 3/9, j = 1: samples .9 pi; the clone (.9 + .1 / e) pi, then
  .9 pi + .1, .9 pi + .05 and pi."""
  traj = mixed(toy, ReflectedClones(texts=TEXTS, keep_ratio=0.2))
  found = np.asarray(traj.logp_behaviour_BT)
  pi = math.exp(-1)
  np.testing.assert_allclose(found[:9], -1.10536, atol=1e-5)
  expected = [1.2 * pi, 0.9 * pi + 0.1, 0.9 * pi + 0.05, pi]
  np.testing.assert_allclose(np.exp(found[9]), expected, rtol=1e-5)


def test_tokens_before_the_text_share_the_error(toy):
  """mu of two is (pi / e^(1/2))^2: b = (.9 + .1 sqrt 3) pi each."""
  traj = mixed(toy, ReflectedClones(texts=TEXTS, keep_ratio=0.2), j=2)
  expected = -1 + math.log(0.9 + 0.1 * math.sqrt(3))
  np.testing.assert_allclose(traj.logp_behaviour_BT[9, :2], expected, rtol=1e-5)


def test_without_clones_it_is_the_policy(toy):
  """E2: alpha = 0, and no clone stays with keep_ratio = 0."""
  plain = mixed(toy, ReflectedClones(texts=TEXTS), foreign=(0,) * 10)
  np.testing.assert_allclose(plain.logp_behaviour_BT, -1.0, atol=1e-6)
  none = mixed(toy, ReflectedClones(texts=TEXTS, keep_ratio=0.0))
  np.testing.assert_allclose(none.logp_behaviour_BT[:9], -1.0, atol=1e-6)
  assert none.valid_B.tolist() == [1] * 9 + [0] == none.weight_B.tolist()
  assert not none.mask_BT[9].any()


def test_the_mixture_is_the_denominator(toy):
  """It is kept as logp_old by score."""
  traj = mixed(toy, ReflectedClones(texts=TEXTS, keep_ratio=0.2))
  stats = {'logp': jnp.full((10, 4), -1.0), 'entropy': jnp.zeros((10, 4))}
  scored, _ = score_lib.with_scores(traj, stats)
  np.testing.assert_array_equal(scored.logp_old_BT, traj.logp_behaviour_BT)


def test_the_text_stands_in_place_of_the_last_turn(toy):
  """Row 0 failed, row 1 did not; draws follow rows, not their places."""
  piece = ReflectedClones(texts=TEXTS, clone_rate=1.0)
  args = jax.random.key(0), jnp.int32(9), jnp.array(IDS), jnp.array(MU)
  traj = rows(toy)
  clones, mu_BT = jax.jit(piece._clones)(traj, *args)
  size = int((mu_BT[0] > 0).sum())
  kinds = [POLICY, ENVIRONMENT] + [FORCED] * size + [PAD] * (4 - size)
  assert clones.kind_BT[0].tolist() == kinds
  assert clones.turn_BT[0, : 2 + size].tolist() == [0] + [1] * (1 + size)
  assert clones.length_B.tolist() == [2 + size, 0]
  assert clones.finished_B.tolist() == [False, True]
  assert clones.row_id_B2[:, 0].tolist() == [9, 9]
  text = clones.response_BT[0, 2 : 2 + size].tolist()
  assert text in [ids[mu > 0].tolist() for ids, mu in zip(IDS, MU, strict=True)]
  turned = jax.tree.map(lambda x: x[::-1] if x.shape[0] == 2 else x, traj)
  other, _ = jax.jit(piece._clones)(turned, *args)
  np.testing.assert_array_equal(other.response_BT[1], clones.response_BT[0])


@pytest.fixture(scope='module')
def replayed(Played, make_episodes):
  """(rewards of the sampled rows) -> (rows of clones, their round)."""
  task, config = KeyDoor(), turns.TurnConfig(max_turns=4, max_turn_tokens=3)
  played = Played(task, config)
  tokenizer = played.tokenizer
  piece = ReflectedClones(texts=(task.alphabet[0],), clone_rate=1.0)

  def replay(reward_B):
    episodes = make_episodes(task, tokenizer, config)
    collector = Collector(
      RolloutConfig(),
      engine=played.engine,
      score=None,
      prompts=types.SimpleNamespace(task=task, tokenizer=tokenizer, players=1),
      selector=types.SimpleNamespace(memory=None),
      judging=Judging(episodes),
      key=played.key,
    )
    sampler = Sampler(collector, played.params, 0, 9, None)
    traj = played.traj.replace(
      reward_B=jnp.array(reward_B, jnp.float32), valid_B=jnp.ones(len(reward_B))
    )
    table = texts_with_mu(piece.texts, tokenizer)
    waits, _ = sampler.run(piece._clones, traj, played.key, np.int32(9), *table)
    done = types.SimpleNamespace(examples=played.examples, indices=None)
    try:
      return sampler.replay(waits, done)
    finally:
      episodes.close()

  return replay


def test_rows_that_are_no_clone_are_in_no_metric(replayed):
  """Only row 0 has failed: all numbers are its own."""
  traj, done = replayed([0.0] + [1.0] * 11)
  assert traj.valid_B.tolist() == [1.0] + [0.0] * 11
  (reward,) = done.reward_NG[np.isfinite(done.reward_NG)]
  found = sampling_metrics([done]) | metrics_of([done])
  assert found['rollout/reward'] == done.reward_NG[0, 0] == reward
  assert found['rollout/reward_errors'] == found['episode/failed_resets'] == 0
  assert found['episode/turns'] == traj.turn_BT[0].max() + 1 > 1


def test_a_round_without_clones_changes_no_metric(replayed):
  """Means of turns and rewards are those of the other round."""
  _, some = replayed([0.0] + [1.0] * 11)
  _, none = replayed([1.0] * 12)
  before, found = (
    sampling_metrics(rounds) | metrics_of(rounds)
    for rounds in ([some], [some, none])
  )
  for name in ('rollout/reward', 'episode/turns', 'episode/calls'):
    assert found[name] == before[name]
  assert found['episode/failed_resets'] == 0


@pytest.mark.parametrize(
  'fields',
  [
    {'turn_BT': jnp.zeros((2, 6), jnp.int32)},
    {'valid_B': jnp.zeros(2)},
    {'reward_B': jnp.ones(2)},
  ],
)
def test_no_clone_of_a_first_turn_or_of_what_did_not_fail(toy, fields):
  """j = 0, a failed verification, a right answer."""
  piece = ReflectedClones(texts=TEXTS, clone_rate=1.0)
  args = jax.random.key(0), jnp.int32(9), jnp.array(IDS), jnp.array(MU)
  found, _ = jax.jit(piece._clones)(rows(toy, **fields), *args)
  assert found.finished_B.all()


def test_the_likeliest_texts_stay(toy):
  """keep_ratio .2 of five rows: one clone of three."""
  foreign = (0,) * 5 + (0, 0, 1, 1, 1)
  piece = ReflectedClones(texts=TEXTS, keep_ratio=0.2)
  traj = mixed(toy, piece, foreign)
  mu_BT = jnp.where(traj.kind_BT == FORCED, 0.5, 0.0)
  logp_BT = jnp.full((10, 4), -1.0).at[8, 1].set(-0.5)
  before = traj.replace(valid_B=jnp.ones(10), mask_BT=jnp.ones((10, 4)))
  found = jax.jit(piece._mixed)(before, logp_BT, mu_BT)
  assert found.valid_B.tolist() == [1] * 7 + [0, 1, 0]


def test_bad_arguments_are_named():
  """Texts, and a task without episodes."""
  prompts = types.SimpleNamespace(tokenizer=CharTokenizer('abc'))
  with pytest.raises(ValueError, match=r'ReflectedClones.texts = \(\)'):
    ReflectedClones().check(CheckContext(prompts=prompts))
  with pytest.raises(ValueError, match="'z'"):
    ReflectedClones(texts=('z',)).check(CheckContext(prompts=prompts))
  method = Method(rollout=ReflectedClones(texts=TEXTS))
  rollout = RolloutConfig()
  with pytest.raises(
    ValueError, match='ReflectedClones repeats episodes, but Ar'
  ):
    turns.check(Arithmetic(), rollout, method)
  own = WithTools(task=Arithmetic(), shown='text')
  rollout = RolloutConfig(turns=turns.TurnConfig())
  turns.check(own, rollout, method)
  own = dataclasses.replace(own, deterministic=False)
  with pytest.raises(
    ValueError, match='ReflectedClones repeats .* WithTools has deterministic'
  ):
    turns.check(own, rollout, method)
