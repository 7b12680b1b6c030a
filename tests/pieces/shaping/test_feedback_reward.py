"""ONI's rewards for messages, by hand."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.ops import feedback, moments
from rl_jax.pieces.roles import CreditContext
from rl_jax.pieces.shaping import FeedbackReward
from rl_jax.types import ENVIRONMENT, POLICY, Turns

# Of kinds 0 and 1 with three variants; kind 1 helps.
TWO = dict(factors=(2, 3), helpful=(1,))
HELPS, OTHER = 4, 1


def episode(toy, rows, **fields):
  """A policy token and an answer a turn; rows: the numbers of answers."""
  B, K = len(rows), len(rows[0])
  ones = np.ones((B, 2 * K))
  is_said = np.arange(2 * K) % 2 == 1
  number = np.zeros((B, 2 * K), np.float32)
  number[:, is_said] = np.asarray(rows) + 1.0
  none = np.zeros((B, K), np.int32)
  return toy.trajectories(
    ones * ~is_said,
    group_size=B,
    kind_BT=np.where(is_said, ENVIRONMENT, POLICY) * ones.astype(np.int32),
    turn_BT=np.tile((np.arange(2 * K) + 1) // 2, (B, 1)),
    turns=Turns(
      reward_BK=none + 0.0, state_BK=none, action_BK=none, calls_BK=none
    ),
    extras={'message_BT': number},
    **fields,
  )


def run(piece, *trajs, reward=None):
  """Rewards of the policy's tokens of the last batch, and the state."""
  state = piece.init(1)
  for traj in trajs:
    given = jnp.zeros(traj.mask_BT.shape[0]) if reward is None else reward
    shaped, state = piece(CreditContext(given, traj, state))
  return np.asarray(shaped)[:, ::2], state


def test_labelled_messages_by_hand(toy):
  """0.4 at first, 0.4 / 8 the second time, 0.4 / 27 then; nothing for others;
  a reward of 1 at the end counts as `extrinsic` says."""
  traj = episode(toy, [[HELPS, OTHER, HELPS, HELPS, OTHER]])
  piece = FeedbackReward(**TWO, extrinsic=0.1)
  shaped, _ = run(piece, traj, reward=jnp.ones(1))
  # The answer to the last turn would be in no row of a run.
  np.testing.assert_allclose(shaped[0, :4], [0.4, 0, 0.05, 0.4 / 27], rtol=1e-5)
  assert shaped[0, 4] == pytest.approx(0.1)


def test_undecayed_rewards_can_be_farmed(toy):
  """Exponent 0: as often as the message comes; at 3 less than 1.2021 times."""
  traj = episode(toy, [[HELPS] * 20])
  farmed, _ = run(FeedbackReward(**TWO, exponent=0.0), traj)
  assert farmed.sum() == pytest.approx(0.4 * 20, rel=1e-5)
  decayed, _ = run(FeedbackReward(**TWO), traj)
  assert 0.4 < decayed.sum() < 0.4 * 1.2021


def test_labels_that_never_arrive_are_the_plain_agent(toy):
  """E0, until the delay is over; then the first answers count."""
  piece = FeedbackReward(**TWO, delay=2, exponent=0.0)
  traj = episode(toy, [[HELPS, OTHER]])
  for count, expected in ((1, 0.0), (2, 0.0), (3, 0.4)):
    shaped, _ = run(piece, *(traj,) * count)
    assert shaped[0, 0] == pytest.approx(expected)


def test_newest_messages_are_labelled_first():
  """Seen in iterations 0, 2, 1; two are new and two answers an iteration."""
  first = jnp.array([0, -1, 2, 1, 2])
  asked = jnp.array([False, False, False, False, True])
  np.testing.assert_array_equal(
    feedback.newest(first, asked, 2), [False, False, True, True, False]
  )
  np.testing.assert_array_equal(
    feedback.newest(first, asked, 9), [True, False, True, True, False]
  )


def test_wrong_labels(toy):
  """All of them at error 1; a message keeps its label."""
  traj = episode(toy, [[HELPS, OTHER]])
  shaped, _ = run(FeedbackReward(**TWO, error=1.0), traj)
  np.testing.assert_allclose(shaped, [[0, 0.4]])
  helps_M = jnp.ones(2000)
  labels = feedback.labels(helps_M, 0.3, seed=1)
  assert labels.mean() == pytest.approx(0.7, abs=0.04)
  np.testing.assert_array_equal(labels, feedback.labels(helps_M, 0.3, seed=1))


def test_the_classifier_knows_a_kind(toy):
  """A message without its own label has that of its kind."""
  piece = FeedbackReward(**TWO, kind='classification', labels=2, exponent=0.0)
  first, second = ([[HELPS, OTHER, OTHER]], [[HELPS + 1, OTHER + 1, OTHER]])
  plain = dataclasses.replace(piece, kind='retrieval', delay=1)
  trajs = [episode(toy, rows) for rows in (first, second)]
  shaped, _ = run(dataclasses.replace(piece, delay=1), *trajs)
  np.testing.assert_allclose(shaped[0, :2], [0.4, 0], atol=1e-6)
  shaped, _ = run(plain, *trajs)
  np.testing.assert_allclose(shaped[0, :2], [0, 0], atol=1e-6)


def test_ranking_loss_by_hand():
  """r = (1, 0): the first is better 0.3133, the second 1.3133, a tie 0.8133."""
  weight, phi = jnp.array([1.0, 0.0]), jnp.eye(2)

  def wins(a, b):
    return jnp.array([[0.0, a], [b, 0.0]])

  for pair, expected in (
    ((1.0, 0.0), 0.3133),
    ((0.0, 1.0), 1.3133),
    ((0.5, 0.5), 0.8133),
  ):
    found = feedback.ranking_loss(weight, phi, wins(*pair))
    assert float(found) == pytest.approx(expected, abs=1e-4)


def test_standardised_scores_by_hand():
  """(0, 1, 2, 5): -0.926, -0.463, 0, 1.389; in any two parts of the stream."""
  x = jnp.array([0.0, 1, 2, 5])
  state = moments.merged(moments.none(), x[:1], jnp.ones(1))
  state = moments.merged(state, x[1:], jnp.ones(3))
  apart = (x - state['mean']) / moments.deviation(state)
  np.testing.assert_allclose(apart, [-0.926, -0.463, 0, 1.389], atol=1e-3)


@pytest.mark.parametrize(('theta', 'passes'), [(0.0, False), (-9.0, True)])
def test_ranking_rewards_what_lies_above_theta(toy, theta, passes):
  """Feedback that helps lies above the mean, the rest below."""
  piece = FeedbackReward(**TWO, kind='ranking', theta=theta, labels=200)
  shaped, _ = run(piece, episode(toy, [[HELPS, OTHER, OTHER, OTHER]]))
  assert shaped[0, 0] > 0.1
  assert (shaped[0, 1] < -0.01) == passes


def test_pairs_of_the_annotator():
  """Each pair counts once; an error turns a verdict round."""
  helps, seen = jnp.array([1.0, 0.0, 1.0]), jnp.array([True, True, False])
  key = jax.random.key(0)
  wins = feedback.compared(helps, seen, 0.0, key, 50)
  assert wins[0, 1] > 10 and wins.sum() == wins[0, 1]
  wrong = feedback.compared(helps, seen, 1.0, key, 50)
  np.testing.assert_array_equal(wrong, wins.T)
  none = feedback.compared(helps, jnp.zeros(3, bool), 0.0, key, 50)
  assert none.sum() == 0


def test_order_of_rows_and_rows_that_do_not_count(toy):
  """E0: equal rewards in any order; an invalid row teaches nothing."""
  rows = [[HELPS, OTHER, HELPS], [OTHER, OTHER, HELPS + 1]]
  piece = FeedbackReward(**TWO, kind='classification')
  one, state = run(piece, episode(toy, rows))
  other, again = run(piece, episode(toy, rows[::-1]))
  np.testing.assert_array_equal(one, other[::-1])
  jax.tree.map(np.testing.assert_array_equal, state, again)
  valid = np.array([1.0, 0.0], np.float32)
  _, state = run(piece, episode(toy, rows, valid_B=valid))
  assert int((state['first'] >= 0).sum()) == 2


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'factors': ()}, r'factors = \(\)'),
    ({'factors': (2, 3), 'helpful': (2,)}, 'kinds are 0 to 1'),
    ({'kind': 'guess'}, "kind = 'guess'"),
    ({'error': 1.5}, 'error = 1.5'),
  ],
)
def test_bad_fields(fields, message):
  """Named when the piece is made."""
  with pytest.raises(ValueError, match=message):
    shaping.FeedbackReward(**fields)


def table(tmp_path, rows):
  path = tmp_path / 'labels.jsonl'
  lines = [json.dumps({'message': m, 'label': x}) + '\n' for m, x in rows]
  path.write_text(''.join(lines))
  return str(path)


def test_labels_of_a_table_by_hand(toy, tmp_path):
  """0.4 for a label of 1 and 0.2 for one half, whatever the rule says; of other
  messages nothing is known.
  """
  path = table(tmp_path, [(OTHER, 1.0), (HELPS, 0.0), (2, 0.5)])
  traj = episode(toy, [[OTHER, HELPS, 2, 5, 0]])
  shaped, state = run(FeedbackReward(**TWO, table=path), traj)
  np.testing.assert_allclose(shaped[0, :4], [0.4, 0, 0.2, 0], rtol=1e-6)
  np.testing.assert_allclose(state['known'], [-1, 1, 0.5, -1, 0, -1])


@pytest.mark.parametrize('kind', ['retrieval', 'classification', 'ranking'])
def test_a_table_of_the_rule_is_the_scripted_annotator(toy, tmp_path, kind):
  """E0, in two iterations, also where few labels arrive late."""
  path = table(tmp_path, [(m, float(m >= 3)) for m in range(6)])
  trajs = [episode(toy, rows) for rows in ([[4, 1, 0]], [[3, 5, 2]])]
  for more in ({}, {'labels': 1, 'delay': 1}):
    piece = FeedbackReward(**TWO, kind=kind, **more)
    expected, _ = run(piece, *trajs)
    found, _ = run(dataclasses.replace(piece, table=path), *trajs)
    np.testing.assert_array_equal(found, expected)


def test_messages_without_a_label_take_no_place(toy, tmp_path):
  """The annotator is asked about those of the table only: one an iteration."""
  path = table(tmp_path, [(HELPS, 1.0)])
  piece = FeedbackReward(**TWO, table=path, labels=1)
  shaped, _ = run(piece, episode(toy, [[OTHER, 2, HELPS, 0]]))
  np.testing.assert_allclose(shaped[0], [0, 0, 0.4, 0], rtol=1e-6)


def test_an_empty_table_is_the_plain_agent(toy, tmp_path):
  """E0."""
  piece = FeedbackReward(**TWO, table=table(tmp_path, []))
  shaped, _ = run(piece, episode(toy, [[HELPS, HELPS]]), reward=jnp.ones(1))
  np.testing.assert_array_equal(shaped, [[0, 1]])


@pytest.mark.parametrize('row', [(6, 1.0), (-1, 1.0), (0, 1.5)])
def test_wrong_rows_of_a_table_are_named(tmp_path, row):
  path = table(tmp_path, [(0, 1.0), row])
  with pytest.raises(ValueError, match='line 2: message .* expected 0 to 5'):
    FeedbackReward(**TWO, table=path).init(1)
