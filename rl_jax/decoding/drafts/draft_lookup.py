"""Drafts of speculative decoding that are looked up in texts."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from rl_jax.decoding.drafts import lookup
from rl_jax.decoding.drafts.settings import PreviousResponses, PromptLookup
from rl_jax.decoding.drafts.speculative import Draft, SpeculativeDecoder
from rl_jax.decoding.slots import Slots
from rl_jax.types import Array


@dataclasses.dataclass(frozen=True)
class LookupDecoder(SpeculativeDecoder):
  """Guesses by lookup.repeated; context_NC: see context_of."""

  drafts: PromptLookup | PreviousResponses
  context_NC: Array

  def draft(self, s: Slots, known_W: Array, K: int) -> Draft:
    """See SpeculativeDecoder."""
    context_WC = self.context_NC[s.row_W // self.group]
    text = [context_WC, s.rows.response_BT[s.row_W]]
    guess_WK = lookup.repeated(
      jnp.concatenate(text, axis=1),
      context_WC.shape[1] + known_W,
      self.drafts.ngram,
      K,
    )
    # They begin at `known`, which is later where tokens were given.
    behind_WK = (s.step_W - known_W)[:, None] + jnp.arange(K)[None]
    guess_WK = jnp.take_along_axis(guess_WK, behind_WK, axis=1, mode='clip')
    return Draft(token_WK=guess_WK)


def context_of(
  drafts: PromptLookup,
  prompt_NP: Array,
  mask_NP: Array,
  previous_NT: Any = None,
) -> Array:
  """Tokens [N, C] before the responses in which drafts are looked up.

  previous_NT: earlier responses, which follow the end of the prompt, so
  that the beginning of a response is found too.
  """
  prompt_NP = jnp.where(mask_NP > 0, prompt_NP, lookup.NOTHING)
  if previous_NT is None:
    return prompt_NP
  tail = prompt_NP[:, max(0, prompt_NP.shape[1] - drafts.ngram + 1) :]
  end_N1 = jnp.full_like(prompt_NP[:, :1], lookup.NOTHING)
  return jnp.concatenate([tail, previous_NT, end_N1, prompt_NP], axis=1)
