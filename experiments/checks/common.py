"""Checks that every method must pass, on the rollout of `toy`.

CHECKS is the table that tests/methods/test_common.py runs on every method of
configs/methods, and `python -m experiments.check_piece` on a piece of a user's.
A check takes a Case and raises AssertionError, saying what differs and where.
"""

from collections.abc import Callable, Iterator
import dataclasses
import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from experiments.checks import toy
from rl_jax.learning.batch import make_batch
from rl_jax.learning.objective import is_per_group, is_per_token
from rl_jax.learning.score import scores_first
from rl_jax.method import Method, validate

NUM_PROMPTS = 5
KEY = 7
GROUP = 4  # rows of a group of `toy`


class Case:
  """A method with its toy iteration.

  Run op by op: the operations are compiled once for all methods, which is far
  cheaper than compiling every method as a whole.
  """

  def __init__(self, method: Method):
    self.method = method
    self.traj, self.stats = toy.batch(method)
    self.state = method.init_state(NUM_PROMPTS)

  def arguments(self, **replaced: Any) -> dict[str, Any]:
    """The arguments of toy.run, any of them replaced."""
    arguments = {
      'method': self.method.as_arrays(),
      'traj': self.traj,
      'stats': self.stats,
      'state': self.state,
      'key': jax.random.key(KEY),
    }
    return {**arguments, **replaced}

  def run(self, **replaced: Any) -> dict[str, Any]:
    """The toy iteration, as NumPy arrays."""
    return jax.device_get(toy.run(**self.arguments(**replaced)))

  @functools.cached_property
  def result(self) -> dict[str, Any]:
    """The iteration on the standard toy batch."""
    return self.run()


def assert_close(
  actual: Any, expected: Any, what: str = 'the result', scale: float = 1.0
) -> None:
  """Tier E1: rtol 1e-5, relative to the largest entry where entries cancel."""
  actual, expected = np.asarray(actual), np.asarray(expected)
  sizes = np.where(np.isfinite(expected), np.abs(expected), 0.0)
  size = max(float(sizes.max(initial=0.0)), 1e-3) * scale
  _assert_within(actual, expected, what, 1e-6 * size)


def assert_same_loss(actual: Any, expected: Any) -> None:
  """Tier E1; 1e-7 is float32's rounding of the terms, which may cancel."""
  _assert_within(np.asarray(actual), np.asarray(expected), 'the loss', 1e-7)


def _assert_within(actual, expected, what, atol):
  assert actual.shape == expected.shape, (
    f'{what} has the shape {actual.shape}, not {expected.shape}'
  )
  wrong = ~np.isclose(actual, expected, rtol=1e-5, atol=atol, equal_nan=True)
  assert not wrong.any(), differing(what, actual, expected, wrong)


def differing(what: str, actual: Any, expected: Any, wrong: Any) -> str:
  """The places where two arrays differ, and the first difference."""
  place = tuple(int(x) for x in np.argwhere(wrong)[0])
  names = ('row', 'token', 'output')
  where = ', '.join(f'{n} {i}' for n, i in zip(names, place, strict=False))
  text = f'{what} becomes {actual[place]:.6g}, not {expected[place]:.6g}'
  if not place:
    return text
  return f'{text}, at {where} and {wrong.sum() - 1} other places'


def _same_gradients(found, expected):
  for name, grad in expected.items():
    assert_close(found[name], grad, f'the gradient of {name}')


def _fields(method: Method) -> Iterator[tuple[str, Any, Any]]:
  """(path, field, value) of every dataclass field of every piece."""
  for path, piece in method.pieces():
    for field in dataclasses.fields(cast(Any, piece)):
      yield path, field, getattr(piece, field.name)


def builds_and_fits_its_needs(case: Case) -> None:
  """The defaults pass their own checks."""
  method = case.method
  validate(
    method,
    group_size=GROUP,
    has_value_head=method.reads_values,
    num_values=method.num_values,
  )


def exactly_the_float_fields_are_leaves(case: Case) -> None:
  """A float can change without recompiling; everything else is static."""
  for path, field, value in _fields(case.method):
    is_leaf = field.metadata.get('pytree_node', True)
    if isinstance(value, float):
      assert is_leaf, f'{path}.{field.name} must not be static'
    elif isinstance(value, (bool, int, str, tuple)) and value != ():
      assert not is_leaf, f'{path}.{field.name} must be static()'
  leaves = jax.tree.leaves(case.method)
  assert all(isinstance(leaf, float) for leaf in leaves), leaves
  arrays = jax.tree.leaves(case.method.as_arrays())
  assert all(x.dtype == jnp.float32 for x in arrays)


def loss_gradients_and_metrics_are_finite(case: Case) -> None:
  """Also where padding holds garbage and one reward is NaN."""
  result = case.result
  assert np.isfinite(result['loss']), f'the loss is {result["loss"]}'
  for name, value in result['metrics'].items():
    assert np.ndim(value) == 0 and np.isfinite(value), (
      f'the metric {name} is {value}'
    )
  _assert_finite(result['grads'])


def finite_at_the_old_policy(case: Case) -> None:
  """Ratio 1 is where max, clip and |x| have kinks; E0 for repeated runs."""
  stats = {**case.stats, 'logp': case.traj.logp_old_BT}
  result = case.run(stats=stats)
  assert np.isfinite(result['loss']), f'the loss is {result["loss"]}'
  _assert_finite(result['grads'])


def _assert_finite(grads):
  for name, grad in grads.items():
    wrong = ~np.isfinite(grad)
    zeros = np.zeros_like(grad)
    assert not wrong.any(), differing(
      f'the gradient of {name}', grad, zeros, wrong
    )


def something_is_learned(case: Case) -> None:
  """Some token has a gradient: the zeros of other checks are not trivial."""
  grads = case.result['grads']
  largest = max(np.abs(grad).max() for grad in grads.values())
  assert largest > 0, 'all gradients are 0'


def no_gradient_on_masked_tokens_and_dropped_rows(case: Case) -> None:
  """Exactly zero, not merely small."""
  traj = case.result['traj']
  trained = (traj.mask_BT > 0) & (traj.weight_B != 0)[:, None]
  for name, grad in case.result['grads'].items():
    _assert_zero(f'the gradient of {name}', grad, ~trained)


def _assert_zero(what, x, where):
  wrong = (x != 0) & where.reshape(where.shape + (1,) * (x.ndim - where.ndim))
  zeros = np.zeros_like(x)
  assert not wrong.any(), differing(what, x, zeros, wrong)


def credit_is_zero_where_nothing_is_trained(case: Case) -> None:
  """Masked tokens and invalid rows carry no advantage and no target."""
  traj = case.result['traj']
  live = (traj.mask_BT > 0) & (traj.valid_B > 0)[:, None]
  for name in ('advantages_BT', 'returns_BT'):
    credit = getattr(traj, name)
    if credit is not None:
      _assert_zero(name, credit, ~live)


def invalid_rows_count_nowhere(case: Case) -> None:
  """E1: whatever the reward, the text and the statistics of a failed row are.

  Row 7 of the toy batch has no reward. Its mask, and with it the denominators
  of statistics over tokens, stay.
  """
  moved, traj = case.traj.valid_B[:, None] == 0, case.traj
  failed_B = moved[:, 0]

  def garbage(x):
    """Another number in the failed row of an array [B, ...] of floats."""
    if x.ndim == 0 or x.shape[0] != failed_B.shape[0]:
      return x
    rows = failed_B.reshape(-1, *[1] * (x.ndim - 1))
    return jnp.where(rows, (3 * x + 1).astype(x.dtype), x)

  reward_B = jnp.where(failed_B, 5.0, traj.reward_B)
  rewards = {name: garbage(x) for name, x in traj.rewards.items()}
  stats = {name: garbage(x) for name, x in case.stats.items()}
  found = case.run(
    traj=traj.replace(reward_B=reward_B, rewards=rewards), stats=stats
  )
  assert_same_loss(found['loss'], case.result['loss'])
  _same_gradients(found['grads'], case.result['grads'])


def per_token_methods_look_at_one_token_at_a_time(case: Case) -> None:
  """E1: what they say decides whether microbatches need their own pass."""
  if not is_per_token(case.method):
    return
  moved = {
    name: x.at[:, ::2].multiply(1.25) if x.ndim == 2 else x
    for name, x in case.stats.items()
  }
  found = case.run(stats=moved)['grads']
  for name, grad in case.result['grads'].items():
    what = f'with per_token = True, the gradient of {name} of other tokens'
    assert_close(found[name][:, 1::2], grad[:, 1::2], what)


def per_group_methods_look_at_one_group_at_a_time(case: Case) -> None:
  """E1: the same for groups, which microbatches never split."""
  if not is_per_group(case.method):
    return
  moved = {name: x.at[GROUP:].multiply(1.25) for name, x in case.stats.items()}
  found = case.run(stats=moved)['grads']
  for name, grad in case.result['grads'].items():
    what = f'with per_group = True, the gradient of {name} of the other group'
    assert_close(found[name][:GROUP], grad[:GROUP], what)


def unscored_rollouts_suffice_where_no_piece_declares_more(case: Case) -> None:
  """E0: credit that reads the old policy says so, or the update would skip the
  pass that scores it."""
  if scores_first(case.method, 1):
    return
  unscored = case.traj.replace(
    logp_old_BT=None, entropy_BT=None, values_BT=None
  )
  traj, _, _ = make_batch(case.arguments()['method'], unscored, case.state)
  np.testing.assert_array_equal(
    traj.advantages_BT, case.result['traj'].advantages_BT
  )


def independent_of_the_padded_width(case: Case) -> None:
  """E1: two more columns of garbage change no loss and no gradient."""
  traj, stats = toy.batch(case.method, width=8)
  wide = case.run(traj=traj, stats=stats)
  assert_same_loss(wide['loss'], case.result['loss'])
  cut = {name: grad[:, :6] for name, grad in wide['grads'].items()}
  _same_gradients(cut, case.result['grads'])
  for name, grad in wide['grads'].items():
    assert (grad[:, 6:] == 0).all(), f'padding has a gradient of {name}'


def independent_of_the_order_of_rows_and_groups(case: Case) -> None:
  """E1: permuting the batch permutes the gradient."""
  order = ([1, 0], [2, 0, 3, 1])
  moved = case.run(
    traj=toy.permute(case.traj, *order), stats=toy.permute(case.stats, *order)
  )
  assert_same_loss(moved['loss'], case.result['loss'])
  _same_gradients(moved['grads'], toy.permute(case.result['grads'], *order))


def new_values_do_not_retrace(case: Case) -> None:
  """Other hyperparameters make the same program, so leaves are never branched
  on and jit compiles once."""
  traces = []

  def traced(**arguments):
    traces.append(1)
    return toy.run(**arguments)

  run = jax.jit(traced)
  run.trace(**case.arguments())
  method = jax.tree.map(lambda x: x * 0.99, case.method.as_arrays())
  run.trace(**case.arguments(method=method))
  assert len(traces) == 1, 'another value of a float field compiles again'


def state_survives_a_round_trip(case: Case) -> None:
  """E0: two steps equal one step, the state through host arrays, one step."""
  form = jax.tree.structure(case.state)
  found = jax.tree.structure(case.result['state'])
  assert found == form, f'the state becomes {found}, not {form}'
  if not jax.tree.leaves(case.state):
    return  # the same call three times
  once = toy.run(**case.arguments())['state']
  direct = case.run(state=once)
  saved = jax.tree.map(lambda x: jnp.asarray(np.array(x)), once)
  resumed = case.run(state=saved)
  jax.tree.map(np.testing.assert_array_equal, direct, resumed)


# In the order in which a reader wants to know.
CHECKS: dict[str, Callable[[Case], None]] = {
  check.__name__: check
  for check in (
    builds_and_fits_its_needs,
    exactly_the_float_fields_are_leaves,
    loss_gradients_and_metrics_are_finite,
    finite_at_the_old_policy,
    something_is_learned,
    no_gradient_on_masked_tokens_and_dropped_rows,
    credit_is_zero_where_nothing_is_trained,
    invalid_rows_count_nowhere,
    independent_of_the_padded_width,
    independent_of_the_order_of_rows_and_groups,
    per_token_methods_look_at_one_token_at_a_time,
    per_group_methods_look_at_one_group_at_a_time,
    unscored_rollouts_suffice_where_no_piece_declares_more,
    new_values_do_not_retrace,
    state_survives_a_round_trip,
  )
}
