"""AdaRFT: the target by hand and what it selects."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import selection
from rl_jax.pieces.piece import CheckContext

KEY = jax.random.key(0)


def at(target, levels=3, size=9):
  """A selector of that many levels and a state with this target."""
  selector = selection.TargetDifficulty(levels=levels)
  state = selector.init(size)
  return selector, {**state, 'target': jnp.float32(target)}


def test_target_by_hand(observed):
  """.5 tanh(2 (.75 - .5)) = .2311; all wrong: .5 tanh(-1) = -.3808, to 0; all
  right from .9: .9 + .3808 is cut at 1."""
  selector, state = at(0.0)
  state = selector.observe(state, np.arange(2), observed([[1, 1], [1, 0]]))
  np.testing.assert_allclose(state['target'], 0.231059, rtol=1e-5)
  state = selector.observe(state, np.arange(2), observed([[0, 0], [0, 0]]))
  assert state['target'] == 0.0
  _, state = at(0.9)
  assert (
    selector.observe(state, np.arange(1), observed([[1, 1]]))['target'] == 1.0
  )


def test_constants_by_hand(observed):
  """.2 tanh(4 (.5 - .25)) = .2 tanh(1) = .15232."""
  selector = selection.TargetDifficulty(step=0.2, sensitivity=4.0, goal=0.25)
  state = selector.observe(selector.init(2), np.arange(1), observed([[1, 0]]))
  np.testing.assert_allclose(state['target'], 0.152319, rtol=1e-5)


@pytest.mark.parametrize(
  ('target', 'level'), [(0.0, 0), (0.2, 0), (0.3, 1), (0.7, 1), (0.8, 2)]
)
def test_the_nearest_level_is_drawn(target, level):
  """Levels 0, .5, 1 of the prompts 0, 3, 6; 1, 4, 7; 2, 5, 8."""
  selector, state = at(target)
  found, _ = selector.select(state, KEY, 3)
  assert sorted(np.asarray(found).tolist()) == [level, level + 3, level + 6]


def test_more_than_a_level_takes_the_next_nearest():
  """Four prompts near .6: the three of .5, then one of 1, not of 0."""
  selector, state = at(0.6)
  found = np.asarray(selector.select(state, KEY, 4)[0])
  assert sorted(found % 3) == [1, 1, 1, 2]


def test_equal_prompts_are_drawn_at_random_by_batch():
  """100 of a level: two batches differ, and neither repeats a prompt."""
  selector, state = at(0.0, levels=2, size=200)
  first, after = selector.select(state, KEY, 20)
  second, _ = selector.select(after, KEY, 20)
  assert set(first.tolist()) != set(second.tolist())
  assert len(set(first.tolist())) == 20


def test_failed_verifications_do_not_count(observed):
  """Rewards 1, NaN: the mean is 1; without any judged sample nothing moves."""
  selector, state = at(0.3)
  one = selector.observe(state, np.arange(1), observed([[1, np.nan]]))
  np.testing.assert_allclose(one['target'], 0.3 + 0.380797, rtol=1e-5)
  none = selector.observe(state, np.arange(1), observed([[np.nan, np.nan]]))
  np.testing.assert_allclose(none['target'], 0.3)


def test_success_may_be_right(observed):
  """Rewards of -1 with right responses raise the target as rewards of 1 do."""
  selector = selection.TargetDifficulty(success='right')
  state = selector.observe(
    selector.init(2), np.arange(1), observed([[-1, -1]], right=1.0)
  )
  np.testing.assert_allclose(state['target'], 0.380797, rtol=1e-5)


def test_order_of_samples_does_not_matter(observed):
  """The mean is over all of the batch."""
  selector, state = at(0.4)
  rewards = np.array([[1.0, 0.0, 0.25], [0.5, 0.75, 0.0]], np.float32)
  one = selector.observe(state, np.arange(2), observed(rewards))
  other = selector.observe(
    state, np.arange(2)[::-1], observed(rewards[::-1, ::-1])
  )
  np.testing.assert_allclose(one['target'], other['target'], rtol=1e-6)


def test_fewer_prompts_than_levels():
  """Named with both numbers."""
  with pytest.raises(ValueError, match='levels = 3: the task has 2 prompts'):
    selection.TargetDifficulty(levels=3).init(2)


def usable(ids):
  """Prompts of a split of which these can be used."""

  class Usable(list):
    split = 'train'
    example_id = list.__getitem__

  return Usable(ids)


def test_levels_that_a_skipped_prompt_shifts_are_refused():
  """Prompt 2, of level 2, would be at place 1; a last one shifts nothing."""
  selector = selection.TargetDifficulty(levels=4)
  selector.check(CheckContext(prompts=usable([0, 1, 2, 3])))
  with pytest.raises(ValueError, match="'skip' left out 1 over-long prompts"):
    selector.check(CheckContext(prompts=usable([0, 2, 3])))


def test_more_than_there_are():
  """The error is that of other selectors."""
  selector, state = at(0.0)
  with pytest.raises(ValueError, match='batch of 10 prompts cannot be drawn'):
    selector.select(state, KEY, 10)
