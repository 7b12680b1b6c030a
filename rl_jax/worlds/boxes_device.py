"""The jittable verifiers of Boxes."""

import itertools
import string
from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.tasks import base, device_verifiers

_COMMA, _OTHER = 10, 11  # codes; cells are 0 to size - 1


def box(task, response_BT, length_B, answer_B4, tokenizer) -> dict[str, Any]:
  """The components of form 'box', f32[B]."""
  code_BT, count_B = _text(task, response_BT, length_B, tokenizer)
  given_B4 = jnp.pad(code_BT, ((0, 0), (0, 4)))[:, :4]
  formed_B = (count_B == 4) & (given_B4 < task.size).all(1)
  formed_B &= (given_B4[:, :2] <= given_B4[:, 2:]).all(1)
  whole_14 = jnp.asarray([[0, 0, task.size - 1, task.size - 1]])
  given_B4 = jnp.where(formed_B[:, None], given_B4, whole_14)
  found = _compare(task, answer_B4, given_B4)
  found = {name: jnp.where(formed_B, x, 0.0) for name, x in found.items()}
  reference = {
    **_compare(task, answer_B4, jnp.broadcast_to(whole_14, answer_B4.shape)),
    **_difficulty(answer_B4),
  }
  total_B = jnp.zeros_like(formed_B, jnp.float32) + base.combine(
    reference | {'reference_reward': 0.0}, task.reward_weights
  )
  return {
    **found,
    **_difficulty(answer_B4),
    'reference_reward': total_B,
  }


def points(task, response_BT, length_B, answer_B4, tokenizer) -> dict[str, Any]:
  """The components of form 'points', f32[B]."""
  code_BT, count_B = _text(task, response_BT, length_B, tokenizer)
  T = code_BT.shape[1]
  P = -(-T // 3)
  code_BP3 = jnp.pad(code_BT, ((0, 0), (0, 3 * P - T))).reshape(-1, P, 3)
  number_B = (count_B + 1) // 3
  used_BP = jnp.arange(P)[None] < number_B[:, None]
  last_BP = jnp.arange(P)[None] == number_B[:, None] - 1
  fits_BP = (code_BP3[:, :, :2] < task.size).all(2)
  fits_BP &= (code_BP3[:, :, 2] == _COMMA) | last_BP
  formed_B = (fits_BP | ~used_BP).all(1)
  formed_B &= (count_B == 0) | (count_B % 3 == 2)
  place_2PB = jnp.moveaxis(code_BP3[:, :, :2], (2, 1), (0, 1))
  for i, j, k in itertools.combinations(range(P), 3):
    line_B = task.on_a_line(*(place_2PB[:, at] for at in (i, j, k)))
    formed_B &= ~(line_B & used_BP[:, k])
  low_B12, high_B12 = answer_B4[:, None, :2], answer_B4[:, None, 2:]
  place_BP2 = code_BP3[:, :, :2]
  inside_BP = ((low_B12 <= place_BP2) & (place_BP2 <= high_B12)).all(2)
  hit_BP = inside_BP & used_BP & formed_B[:, None]
  hit_B = hit_BP.any(1)
  found = {
    base.OUTCOME: hit_B,
    'format': formed_B,
    'hit_rank': jnp.where(hit_B, hit_BP.argmax(1) + 1, 0),
    'num_answers': jnp.where(formed_B, number_B, -1),
  }
  found = {name: x.astype(jnp.float32) for name, x in found.items()}
  return found | _difficulty(answer_B4)


def _compare(task, right_B4, given_B4):
  """The components of given boxes."""
  low_B2 = jnp.maximum(right_B4[:, :2], given_B4[:, :2])
  high_B2 = jnp.minimum(right_B4[:, 2:], given_B4[:, 2:])
  shared_B = jnp.maximum(high_B2 + 1 - low_B2, 0).prod(1)
  union_B = _cells(right_B4) + _cells(given_B4) - shared_B
  middle_B2 = given_B4[:, :2] + given_B4[:, 2:]
  hit_B2 = (2 * right_B4[:, :2] <= middle_B2) & (
    middle_B2 <= 2 * right_B4[:, 2:]
  )
  near_B4 = 1.0 - jnp.abs(right_B4 - given_B4) / task.size
  return {
    base.OUTCOME: hit_B2.all(1).astype(jnp.float32),
    'iou': shared_B / union_B,
    'edges': 4.0 / (1.0 / near_B4).sum(1),
    'format': jnp.ones_like(union_B, jnp.float32),
  }


def _difficulty(answer_B4):
  return {'difficulty': _cells(answer_B4) ** -0.5}


def _cells(box_B4):
  return (box_B4[:, 2:] + 1 - box_B4[:, :2]).prod(1)


def _text(task, response_BT, length_B, tokenizer):
  """Codes of the characters, moved to the front, i32[B, T]; how many i32[B]."""
  codes = {c: i for i, c in enumerate(string.digits[: task.size])}
  codes[','] = _COMMA
  ids = range(tokenizer.vocab_size)
  code_V = np.asarray(
    [codes.get(tokenizer.decode([i]), _OTHER) for i in ids], np.int32
  )
  kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
  code_BT = jnp.asarray(code_V)[jnp.clip(response_BT, 0, len(code_V) - 1)]
  order_BT = jnp.argsort(~kept_BT, axis=1, stable=True)
  return jnp.take_along_axis(code_BT, order_BT, axis=1), kept_BT.sum(1)
