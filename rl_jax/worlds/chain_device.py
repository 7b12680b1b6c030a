"""The jittable verifier of Chain: responses are read character by character."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.tasks import base, device_verifiers

_UNKNOWN = 3  # mode or format, as in `Chain`
# Codes of characters: 0..9 are digits, then these; all else is _OTHER.
_CHARACTERS = '0123456789+-*=;<>'
_PLUS, _TIMES = 10, 12
_EQUALS, _SEMICOLON, _OPEN, _CLOSE, _OTHER = 13, 14, 15, 16, 17
# What may come next. 0..4 are the five places of a step.
_START, _AFTER_STEP, _ANSWER, _DONE = 5, 6, 7, 8
_CONTROL, _THOUGHT = 9, 10  # with controls: the mode's character, then <


def step_number(step: str) -> int:
  """A number for '3+4=7', equal for equal steps only: 3047."""
  first, operation, second, _, result = step
  code = _CHARACTERS.index(operation) - 10
  return ((int(first) * 3 + code) * 10 + int(second)) * 10 + int(result)


def rewards(
  response_BT,
  length_B,
  answer_BA,
  answer_length_B,
  tokenizer,
  max_operations,
  controls,
) -> dict[str, Any]:
  """The components of `Chain.reward`, f32[B].

  answer_BA: the digit, then the numbers of the steps.
  """
  kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
  code_BT = _codes(response_BT, tokenizer)
  zero_B = jnp.zeros_like(answer_length_B)
  needed_B = answer_length_B - 1
  last = answer_BA.shape[1] - 1

  def read(state, inputs):
    code_B, kept_B = inputs
    new = _next(state, code_B)
    ended_B = (state['place'] == 4) & (code_B < 10)
    written_B = state['written']
    index_B = jnp.minimum(1 + written_B, last)
    expected_B = jnp.take_along_axis(answer_BA, index_B[:, None], axis=1)[:, 0]
    inside_B = ended_B & (written_B < needed_B)
    new['equal'] += inside_B & (new['number'] == expected_B)
    new['written'] += ended_B
    return jax.tree.map(lambda n, o: jnp.where(kept_B, n, o), new, state), None

  end, _ = jax.lax.scan(read, _start(zero_B, controls), (code_BT.T, kept_BT.T))
  legal_B = end['legal'] & (end['place'] == _DONE)
  outcome_B = legal_B & (end['digit'] == answer_BA[:, 0])
  mode_B = _begun(end['first'], controls)
  if not controls:
    mode_B += (legal_B & (end['written'] > needed_B)).astype(jnp.int32)

  def of_legal(x, other: float = 0):
    return jnp.where(legal_B, x, other)

  found = {
    'cluster_id': of_legal(end['digit'], -1),
    'difficulty': needed_B / max_operations,
    'format': legal_B,
    'format_id': of_legal(mode_B, _UNKNOWN),
    'guessed': mode_B == 0,
    'hit_rank': outcome_B,
    'mode': mode_B,
    'num_answers': of_legal(1, -1),
    base.OUTCOME: outcome_B,
    'steps': of_legal(end['equal'] / needed_B, 0.0),
  }
  return {name: x.astype(jnp.float32) for name, x in found.items()}


def _begun(first_B, controls):
  """The mode that the first character says, if there is one."""
  begins = [(first_B >= 0) & (first_B < 10), first_B == _OPEN]
  if controls:
    begins = [first_B == code for code in (_EQUALS, _PLUS, _TIMES)]
  return jnp.select(begins, list(range(len(begins))), _UNKNOWN)


def _start(zero_B, controls):
  """The state before the first character."""
  return dict(
    place=zero_B + (_CONTROL if controls else _START),
    first=zero_B - 1,  # the first character
    number=zero_B,  # of the step that is being read
    digit=zero_B - 1,  # the answer
    written=zero_B,
    equal=zero_B,
    legal=zero_B == 0,
  )


def row_inputs(response_BT, length_B, tokenizer) -> dict[str, Any]:
  """segment_start_BT and think_mask_BT, f32[B, T], of any responses.

  A segment begins after <, ; and >, and with the response; the thought reaches
  from its < to its >, both included, or to the end.
  """
  kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
  code_BT = jnp.where(kept_BT, _codes(response_BT, tokenizer), _OTHER)
  before_BT = jnp.pad(code_BT, ((0, 0), (1, 0)), constant_values=_OPEN)[:, :-1]
  starts_BT = (before_BT >= _SEMICOLON) & (before_BT <= _CLOSE)
  opened_BT = jnp.cumsum(code_BT == _OPEN, axis=1) > 0
  closed_BT = jnp.cumsum(before_BT == _CLOSE, axis=1) > 0
  return {
    'segment_start_BT': (starts_BT & kept_BT).astype(jnp.float32),
    'think_mask_BT': (opened_BT & ~closed_BT & kept_BT).astype(jnp.float32),
  }


def _next(state, code_B):
  """The state of every row after a character that is text."""
  place_B, number_B = state['place'], state['number']
  is_digit_B = code_B < 10
  is_op_B = (code_B >= 10) & (code_B < _EQUALS)
  guess_B = is_digit_B & (place_B == _START)
  answered_B = guess_B | (is_digit_B & (place_B == _ANSWER))
  thinks_B = (code_B == _PLUS) | (code_B == _TIMES)
  moves = [  # (whether it may come here, the next place)
    ((place_B == _CONTROL) & (code_B == _EQUALS), _ANSWER),
    ((place_B == _CONTROL) & thinks_B, _THOUGHT),
    (((place_B == _START) | (place_B == _THOUGHT)) & (code_B == _OPEN), 0),
    (((place_B == 0) | (place_B == 2)) & is_digit_B, place_B + 1),
    ((place_B == 1) & is_op_B, 2),
    ((place_B == 3) & (code_B == _EQUALS), 4),
    ((place_B == 4) & is_digit_B, _AFTER_STEP),
    ((place_B == _AFTER_STEP) & (code_B == _SEMICOLON), 0),
    ((place_B == _AFTER_STEP) & (code_B == _CLOSE), _ANSWER),
    (answered_B, _DONE),
  ]
  legal_B, next_B = jnp.zeros_like(state['legal']), place_B
  for allowed_B, place in moves:
    legal_B |= allowed_B
    next_B = jnp.where(allowed_B, place, next_B)
  base_B = jnp.where(place_B == 1, 3, 10)
  value_B = jnp.where(place_B == 1, code_B - 10, code_B)
  number_B = jnp.where(place_B == 0, code_B, number_B * base_B + value_B)
  number_B = jnp.where(place_B == 3, state['number'], number_B)
  return {
    **state,
    'place': next_B,
    'first': jnp.where(state['first'] < 0, code_B, state['first']),
    'number': jnp.where(legal_B & (place_B < _START), number_B, 0),
    'digit': jnp.where(answered_B, code_B, state['digit']),
    'legal': state['legal'] & legal_B,
  }


def _codes(response_BT, tokenizer):
  """Character codes i32[B, T]."""
  codes = {c: i for i, c in enumerate(_CHARACTERS)}
  ids = range(tokenizer.vocab_size)
  code_V = np.asarray(
    [codes.get(tokenizer.decode([i]), _OTHER) for i in ids], np.int32
  )
  return jnp.asarray(code_V)[jnp.clip(response_BT, 0, len(code_V) - 1)]
