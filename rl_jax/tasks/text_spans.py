"""Marks thoughts and steps of responses by texts that are in them."""

import dataclasses
from typing import Any

from rl_jax.checks import checked
from rl_jax.tasks import wrapped


@dataclasses.dataclass(frozen=True)
@checked
class TextSpans(wrapped.Wrapped):
  r"""A task whose responses are divided by texts, for pieces that read tokens.

    TextSpans(QuestionAnswer(...), think=('<think>', '</think>'))

  think_mask_BT: 1 from the token that completes the first text of `think` to
    the one that completes the second after it, both included; to the end of a
    response without the second. Only the first thought counts. With `opened`
    the prompt has the first text, and the thought begins with the response.
  segment_start_BT: 1 on the first token, and after each token that completes
    one of `segments`: '\n' for lines, '\n\n' for steps.

  Texts are found however they are divided into tokens; a token that completes
  one belongs to the span that it ends. What the task says itself of a key is
  replaced. An empty field marks nothing and leaves the key to the task.
  """

  task: Any
  think: tuple[str, str] | None = ('<think>', '</think>')
  segments: tuple[str, ...] = ('\n',)
  opened: bool = False

  def __post_init__(self):
    super().__post_init__()
    if self.think is not None and not all(self.think):
      raise ValueError(f'TextSpans.think = {self.think!r} has an empty text')
    if not all(self.segments):
      raise ValueError(
        f'TextSpans.segments = {self.segments!r} has an empty text'
      )
    if self.think is None and not self.segments:
      raise ValueError(
        'TextSpans.think = None and segments = (): it would mark nothing'
      )
    if self.opened and self.think is None:
      raise ValueError('TextSpans.opened = True needs think')

  def row_inputs_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> dict[str, Any]:
    """The inputs of the task, and both masks."""
    import jax.numpy as jnp

    found = {}
    if self.task.supports('row_inputs_device'):
      found = dict(
        self.task.row_inputs_device(response_BT, length_B, tokenizer)
      )
    place_1T = jnp.arange(response_BT.shape[1])[None]
    on_BT = place_1T < length_B[:, None]

    def completes(*texts):
      return on_BT & _completes(texts, response_BT, tokenizer)

    def before(x_BT):
      return jnp.pad(x_BT, ((0, 0), (1, 0)))[:, :-1]

    if self.think is not None:
      first, second = self.think
      begun_BT = on_BT
      if not self.opened:
        begun_BT = jnp.cumsum(completes(first), axis=1) > 0
      ended_BT = jnp.cumsum(completes(second) & begun_BT, axis=1) > 0
      think_BT = begun_BT & ~before(ended_BT) & on_BT
      found['think_mask_BT'] = think_BT.astype(jnp.float32)
    if self.segments:
      start_BT = before(completes(*self.segments)) | (place_1T == 0)
      found['segment_start_BT'] = (start_BT & on_BT).astype(jnp.float32)
    return found


def _completes(texts: tuple[str, ...], response_BT: Any, tokenizer: Any) -> Any:
  """Returns the tokens that complete a text, bool [B, T]."""
  import jax
  import jax.numpy as jnp

  from rl_jax.decoding.stop import token_table

  table_SV = jnp.asarray(
    token_table([text.encode() for text in texts], tokenizer.token_bytes)
  )
  token_TB = jnp.minimum(response_BT, table_SV.shape[1] - 1).T

  def step(state_B, token_B):
    after_B = table_SV[state_B, token_B]
    whole_B = after_B < 0
    return jnp.where(whole_B, ~after_B, after_B), whole_B

  first_B = jnp.zeros_like(token_TB[0], table_SV.dtype)
  _, whole_TB = jax.lax.scan(step, first_B, token_TB)
  return whole_TB.T
