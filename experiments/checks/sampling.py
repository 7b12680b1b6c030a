"""Checks of transforms of logits and of selectors of prompts.

As in `common`, a check raises AssertionError saying what differs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.checks.common import assert_close
from rl_jax.pieces import calls
from rl_jax.pieces.roles import LogitContext, LogitTransform, Selector
from rl_jax.types import GroupSummary

NUM_PROMPTS, COUNT, GROUP = 12, 4, 3


def _context(piece: LogitTransform) -> LogitContext:
  """Five places of a vocabulary of seven, one with a token that was cut."""
  rng = np.random.RandomState(0)
  logits_RV = rng.normal(size=(5, 7)).astype(np.float32)
  logits_RV[1, 2] = -np.inf
  others = {
    name: jnp.asarray(rng.normal(size=(5, 7)), jnp.float32)
    for name in piece.policies
  }
  # As many as a value of the state and two of every action.
  values_RH = jnp.asarray(rng.normal(size=(5, 1 + 2 * 7)), jnp.float32)
  return LogitContext(jnp.asarray(logits_RV), others, values_RH)


def logits_are_numbers_and_a_token_is_left(piece: LogitTransform) -> None:
  """Logits are not NaN or +inf, and every place keeps a token."""
  found = np.asarray(calls.logits(piece, _context(piece)))
  assert not np.isnan(found).any(), 'some logits are NaN'
  assert not np.isposinf(found).any(), 'some logits are +inf'
  left = np.isfinite(found).any(axis=1)
  assert left.all(), f'all tokens are cut at place {int(np.argmin(left))}'


def logits_look_at_one_place_at_a_time(piece: LogitTransform) -> None:
  """E1: other logits at two places leave the distribution of the rest."""
  ctx = _context(piece)
  moved = ctx._replace(logits_RV=ctx.logits_RV.at[:2].multiply(1.5))
  found, expected = (
    jax.nn.log_softmax(calls.logits(piece, x))[2:] for x in (moved, ctx)
  )
  assert_close(found, expected, 'the log-prob after the first two places')


def logits_are_the_same_when_compiled(piece: LogitTransform) -> None:
  """E1: float fields are traced, so nothing branches on them."""
  ctx = _context(piece)
  compiled = jax.jit(calls.logits)(jax.tree.map(jnp.float32, piece), ctx)
  assert_close(compiled, calls.logits(piece, ctx), 'the logits')


def selected_prompts_are_of_the_data(piece: Selector) -> None:
  """`select` returns int32[count] indices of prompts and the next state."""
  state = piece.init(NUM_PROMPTS)
  for _ in range(3):
    ids, state = piece.select(state, jax.random.key(0), COUNT)
    ids = np.asarray(ids)
    assert ids.shape == (COUNT,) and np.issubdtype(ids.dtype, np.integer), (
      f'select returns {ids.dtype}{list(ids.shape)}, not int32[{COUNT}]'
    )
    inside = (ids >= 0) & (ids < NUM_PROMPTS)
    assert inside.all(), f'select returns prompt {ids[~inside][0]} of 12'
    state = piece.observe(state, jnp.asarray(ids), _summary(ids))


def selection_is_repeated_from_its_state(piece: Selector) -> None:
  """E0: the state holds all that it remembers, with the key of the run."""
  key, state = jax.random.key(0), piece.init(NUM_PROMPTS)
  ids, state = piece.select(state, key, COUNT)
  state = piece.observe(state, ids, _summary(ids))
  saved = jax.tree.map(lambda x: jnp.asarray(np.array(x)), state)
  direct, _ = piece.select(state, key, COUNT)
  resumed, _ = piece.select(saved, key, COUNT)
  np.testing.assert_array_equal(direct, resumed)


def selector_states_keep_their_form(piece: Selector) -> None:
  """A state is a pytree of arrays whose shapes and types never change."""
  form = jax.tree.map(np.shape, piece.init(NUM_PROMPTS))
  ids, state = piece.select(piece.init(NUM_PROMPTS), jax.random.key(0), COUNT)
  state = piece.observe(state, ids, _summary(ids))
  found = jax.tree.map(np.shape, state)
  assert found == form, f'the state has the form {found}, not {form}'


def _summary(ids: Any) -> GroupSummary:
  """Judged groups of these prompts; one row could not be judged."""
  rng = np.random.RandomState(1)
  reward_NG = rng.randint(2, size=(len(ids), GROUP)).astype(np.float32)
  right_NG = reward_NG.copy()
  reward_NG[0, 0] = np.nan
  length_NG = np.full_like(reward_NG, 3.0)
  return GroupSummary(
    reward_NG=jnp.asarray(reward_NG),
    right_NG=jnp.asarray(right_NG),
    length_NG=jnp.asarray(length_NG),
    entropy_NG=jnp.asarray(length_NG / 3.0),
  )


LOGITS: dict[str, Callable[[Any], None]] = {
  check.__name__: check
  for check in (
    logits_are_numbers_and_a_token_is_left,
    logits_look_at_one_place_at_a_time,
    logits_are_the_same_when_compiled,
  )
}
SELECTOR: dict[str, Callable[[Any], None]] = {
  check.__name__: check
  for check in (
    selected_prompts_are_of_the_data,
    selection_is_repeated_from_its_state,
    selector_states_keep_their_form,
  )
}
