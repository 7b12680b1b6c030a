"""One sample of each group is the best refinement."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.pieces.piece import CheckContext
from rl_jax.records import metrics
from rl_jax.rollouts.wrappers.critique_refinement import (
  CritiqueRefinement,
  with_refinement,
)
from rl_jax.runs.loop import Trainer
from rl_jax.worlds import Arithmetic
from tests.rollouts.wrappers.test_rubric_scaffold import SMALL


def test_the_first_right_refinement_is_taken_else_the_best():
  """NaN is a verification that failed; of none the first."""
  nan = np.nan
  rewards = np.array(
    [[0, 1, 1], [0.1, 0.3, 0.2], [nan, 0.2, nan], [nan, nan, nan]]
  )
  found = CritiqueRefinement()._chosen(rewards)
  assert found.tolist() == [1, 1, 1, 0]
  assert CritiqueRefinement(solved_above=1.0)._chosen(rewards).tolist() == [
    *(1, 1, 1, 0)
  ]


def test_groups_by_hand(toy):
  """The first rows of two groups of two are refinements 1 and 0."""
  plain = toy.trajectories(
    np.ones((4, 1)), group_size=2, reward_B=np.arange(4.0)
  )
  refined = plain.replace(
    reward_B=10.0 + plain.reward_B,
    prompt_NP=plain.prompt_NP + 5,
    extras={'foreign_B': jnp.ones(4)},
  )
  found = with_refinement(plain, refined, jnp.array([1, 0]))
  np.testing.assert_array_equal(found.reward_B, [11, 1, 12, 3])
  np.testing.assert_array_equal(found.extras['foreign_B'], [1, 0, 1, 0])
  np.testing.assert_array_equal(found.prompt_NP, plain.prompt_NP)
  assert found.group_size == 2


def test_a_task_without_critiques_is_refused():
  with pytest.raises(ValueError, match='Arithmetic has no method `criticised`'):
    CritiqueRefinement().check(CheckContext(task=Arithmetic()))


def test_a_run_is_trained_on_one_refinement_a_group(tmp_path):
  """The other samples are those of a run without critiques."""
  build = functools.partial(configuration.build, 'criticised_families')

  def lines(name, method):
    Trainer(build(method, SMALL), str(tmp_path / name)).run()
    return metrics.read_jsonl(str(tmp_path / name / metrics.ROLLOUTS))

  found = lines('refined', 'critique_grpo')
  plain = lines('plain', 'critique_grpo@unrefined')
  same = [
    a['response'] == b['response'] for a, b in zip(found, plain, strict=False)
  ]
  assert all(same[1::3]) and all(same[2::3]) and not all(same[::3])
  row = metrics.read_jsonl(str(tmp_path / 'refined' / metrics.METRICS))[-1]
  assert row['policy/refined'] > 0
