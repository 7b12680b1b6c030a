"""The ends and the labels of the steps of recorded responses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rl_jax.tasks.base import RecordedResponse


def step_labels(
  records: Sequence[RecordedResponse], tokenizer: Any, max_response_tokens: int
) -> np.ndarray:
  """f32[B, T]: the label at the last token of each step, -1 elsewhere.

  Steps are encoded one by one, as data.completions does. One without
  tokens has no place for its label.
  """
  found = np.full((len(records), max_response_tokens), -1.0, np.float32)
  for row, recorded in enumerate(records):
    end = -1
    for step, label in zip(recorded.steps, recorded.step_labels, strict=True):
      size = len(tokenizer.encode(step))
      end += size
      if size:
        found[row, end] = label
  return found
