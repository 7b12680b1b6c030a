"""PCL: which candidates are chosen, and what the table learns."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import selection
from rl_jax.pieces.selection.prompt_value import candidates

KEY = jax.random.key(0)


def test_the_nearest_to_the_target_by_hand():
  """Among .1, .45, .9 and .6 the second and the fourth; .9 for target 1."""
  value = jnp.array([0.1, 0.45, 0.9, 0.6])
  for target, expected in ((0.5, {1, 3}), (1.0, {2, 3}), (0.0, {0, 1})):
    selector = selection.PromptValue(target=target)
    state = {**selector.init(4), 'value': value}
    found, after = selector.select(state, KEY, 2)
    assert {*np.asarray(found).tolist()} == expected
    assert after['batches'] == 1


def test_one_candidate_a_prompt_is_a_uniform_draw():
  """E0: the reduction; values do not count."""
  selector = selection.PromptValue(candidate_ratio=1)
  state = selector.init(8)
  some = {**state, 'value': jnp.linspace(0, 1, 8)}
  drawn = np.asarray(selector.select(some, KEY, 3)[0])
  expected = np.asarray(candidates(KEY, state['batches'], 1, 3, 8))
  assert {*drawn.tolist()} == {*expected.tolist()}


def test_a_batch_is_chosen_before_its_rewards_are_known(observed):
  """The table lags by one batch; groups without a judged sample stay."""
  selector = selection.PromptValue()
  state = selector.init(3)
  reward = [[1.0, 0.0, np.nan, 0.0], [np.nan] * 4]
  after = selector.observe(state, np.array([2, 1]), observed(reward))
  np.testing.assert_allclose(after['value'], [0.0, 0.0, 1 / 3], rtol=1e-6)
  assert after['batches'] == state['batches']


def test_a_shift_of_target_and_values_changes_nothing():
  """E0, with numbers that binary fractions hold."""
  value = jnp.array([0.125, 0.5, 0.875, 0.625, 0.25])
  drawn = []
  for shift in (0.0, 0.25):
    selector = selection.PromptValue(target=0.5 + shift)
    state = {**selector.init(5), 'value': value + shift}
    drawn.append(np.asarray(selector.select(state, KEY, 3)[0]).tolist())
  assert drawn[0] == drawn[1]
