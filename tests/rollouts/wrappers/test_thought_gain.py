"""Thoughts, and the texts that are read after them."""

import types

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.piece import CheckContext
from rl_jax.records import metrics
from rl_jax.rollouts.wrappers import thought_gain
from rl_jax.rollouts.wrappers.thought_gain import ThoughtGain
from rl_jax.runs.loop import Trainer
from rl_jax.tasks.base import Example
from rl_jax.worlds import Families
from tests.rollouts.wrappers.test_rubric_scaffold import SMALL


def rows(toy):
  """Two rows of five places, with four and three tokens."""
  mask_BT = np.array([[1.0, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
  response_BT = np.array([[2, 3, 4, 5, 0], [6, 7, 8, 0, 0]])
  return toy.trajectories(
    mask_BT,
    group_size=2,
    response_BT=response_BT,
    logp_behaviour_BT=-mask_BT,
    length_B=np.array([4, 3]),
  )


def test_thoughts_by_hand(toy):
  """The first ends after two tokens, the second has none and is cut by 3."""
  think_BT = np.array([[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
  found = thought_gain.thoughts(rows(toy), think_BT, 1)
  assert found.length_B.tolist() == [2, 3]
  assert found.response_BT.tolist() == [[2, 3, 0, 0, 0], [6, 7, 8, 0, 0]]
  assert found.mask_BT.tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
  found = thought_gain.thoughts(rows(toy), think_BT, 3)
  assert found.length_B.tolist() == [2, 2]
  assert found.logp_behaviour_BT.tolist() == [[-1, -1, 0, 0, 0]] * 2


def test_texts_follow_by_hand(toy):
  """Only the text is scored, after what the row holds or after the prompt."""
  think_BT = np.array([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]])
  thought = thought_gain.thoughts(rows(toy), think_BT, 2)
  text = np.array([[9, 8]]), np.array([2])
  found = thought_gain.followed(thought, *text)
  assert found.response_BT.tolist() == [[2, 3, 9, 8, 0], [6, 9, 8, 0, 0]]
  assert found.mask_BT.tolist() == [[0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
  assert found.length_B.tolist() == [4, 3]
  alone = thought_gain.followed(thought_gain.without(thought), *text)
  assert alone.response_BT.tolist() == [[9, 8, 0, 0, 0]] * 2
  assert alone.mask_BT.tolist() == [[1, 1, 0, 0, 0]] * 2


def test_an_empty_thought_gains_nothing_for_equal_policies(toy):
  """E0: both forward passes read the same rows."""
  none = thought_gain.without(rows(toy))
  text = np.array([[9, 8]]), np.array([1])
  again = thought_gain.followed(thought_gain.without(none), *text)
  first = thought_gain.followed(none, *text)
  np.testing.assert_array_equal(first.response_BT, again.response_BT)
  np.testing.assert_array_equal(first.mask_BT, again.mask_BT)


def test_texts_are_padded_and_checked(toy):
  examples = [Example(prompt='', answer=x, id=0) for x in ('12', '3')]
  tokenizer = CharTokenizer('0123456789')
  traj = rows(toy)
  token_NM, count_N = thought_gain._texts(examples, tokenizer, traj)
  assert token_NM.shape[1] == traj.response_BT.shape[1]
  assert token_NM[:, :2].tolist() == [[3, 4], [5, 0]]
  assert not token_NM[:, 2:].any() and count_N.tolist() == [2, 1]
  long = [Example(prompt='', answer='123456', id=0)]
  with pytest.raises(ValueError, match='texts of 1 to'):
    thought_gain._texts(long, tokenizer, rows(toy))


def test_a_task_that_marks_nothing_is_refused():
  with pytest.raises(ValueError, match='Families has no method'):
    ThoughtGain().check(CheckContext(task=Families()))
  sampler = types.SimpleNamespace(row_inputs=lambda traj: {}, task=Families())
  with pytest.raises(ValueError, match='needs think_mask_BT'):
    ThoughtGain().extend(None, None, sampler)


def test_a_run_learns_from_texts(tmp_path):
  """Gains differ between samples, so that there is a gradient."""
  sets = (*SMALL, 'update.minibatch_prompts=4', 'iterations=1')
  config = configuration.build('chain', 'rlp', sets)
  Trainer(config, str(tmp_path)).run()
  row = metrics.read_jsonl(str(tmp_path / metrics.METRICS))[-1]
  assert row['train/grad_norm'] > 0
