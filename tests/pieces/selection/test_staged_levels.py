"""CRAFT-GUI: which levels each batch has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import selection

KEY = jax.random.key(0)


def drawn(selector, size, count, batches):
  """The prompts of each batch."""
  state, found = selector.init(size), []
  for _ in range(batches):
    ids, state = selector.select(state, KEY, count)
    found.append(np.asarray(ids))
  return found


def test_levels_of_the_stages_by_hand():
  """One batch each of level 0, of 0 and 1, and then of 1 and 2."""
  selector = selection.StagedLevels(ends=(1, 2))
  levels = [{*(x % 3)} for x in drawn(selector, 30, 10, 4)]
  assert levels[0] == {0}
  assert levels[1] == {0, 1}
  assert levels[2] <= {1, 2} and levels[3] <= {1, 2}


def test_a_pass_comes_to_its_end_before_a_prompt_returns():
  """Ten prompts of level 0, five a batch; the third batch begins again."""
  selector = selection.StagedLevels(ends=(9, 10))
  one, two, three = drawn(selector, 30, 5, 3)
  assert not {*one} & {*two} and {*three} <= {*one} | {*two}


def test_one_stage_of_all_levels_is_a_pass():
  """The reduction: every prompt once, whatever its level."""
  selector = selection.StagedLevels(levels=3, stages=((0, 2),), ends=())
  found = np.concatenate(drawn(selector, 12, 4, 3))
  assert sorted(found.tolist()) == list(range(12))


def test_others_fill_a_batch_that_has_too_few():
  """And all of the stage's are there."""
  (found,) = drawn(selection.StagedLevels(), 9, 5, 1)
  assert {0, 3, 6} <= {*found.tolist()} and len({*found.tolist()}) == 5


def test_what_was_sampled_changes_nothing(observed):
  selector = selection.StagedLevels()
  state = selector.init(6)
  after = selector.observe(state, jnp.arange(2), observed([[0.0], [1.0]]))
  assert after is state


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'ends': (20,)}, r'ends = \(20,\) for 3 stages'),
    ({'ends': (20, 20)}, r'ends = \(20, 20\)'),
    ({'levels': 2}, r'\(1, 2\) is not a range of the levels 0 to 1'),
    ({'stages': ((1, 0), (0, 1), (1, 2))}, r'\(1, 0\) is not a range'),
  ],
)
def test_bad_stages_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    selection.StagedLevels(**fields)


def test_more_levels_than_prompts_are_an_error():
  with pytest.raises(ValueError, match='has 2 prompts, less than one'):
    selection.StagedLevels().init(2)
