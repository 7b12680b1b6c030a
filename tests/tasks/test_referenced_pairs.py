"""Rows of a response and its reference."""

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.pieces.roles import CreditContext, LossContext
from rl_jax.tasks import ReferencedPairs
from rl_jax.worlds import Arithmetic, Motifs


def test_four_rows_of_a_pair():
  """The chosen text beside the rejected one comes first."""
  task = ReferencedPairs(task=Motifs(), separator='-')
  example = task.example('train', 3)
  w, l = (one.text for one in Motifs().recorded(example))  # noqa: E741
  rows = task.recorded(example)
  assert task.num_recorded == len(rows) == 4
  texts = [f'{w}-{l}', f'{w}-{w}', f'{l}-{l}', f'{l}-{w}']
  assert [one.text for one in rows] == texts
  assert [one.reward for one in rows] == [2.0, 1.0, 1.0, 0.0]
  assert task.reward(example, w) == Motifs().reward(example, w)


def test_the_loss_of_gaps_by_hand(toy):
  """g = 1, 0.1, -0.1, -1: five differences, 1.3839 in all."""
  method = configuration.load_method('reward_model@rankings')
  values = np.float32([[1.0], [0.1], [-0.1], [-1.0]])
  stats = {'logp': 0 * values, 'values_after': values}
  traj = toy.trajectories(np.ones((4, 1)), group_size=4)
  context = CreditContext(np.float32([2, 1, 1, 0]), traj)
  traj = traj.replace(edges=method.pairs(context).value)
  assert int(traj.edges.weight_NE.sum()) == 5
  value = method.losses[0](LossContext(stats, traj)).value
  np.testing.assert_allclose(5 * float(value), 1.3839, atol=1e-4)


def test_a_task_without_pairs_is_named():
  with pytest.raises(ValueError, match='data of Arithmetic have 1'):
    ReferencedPairs(task=Arithmetic())
