"""The rows that are being decoded, and their caches."""

from flax import struct
import jax.numpy as jnp

from rl_jax import models
from rl_jax.types import Array

# Rows attend to the prompts that their groups share in the places of all rows;
# of more places a row it is cheaper to give each row its prompt to itself.
MOST_PLACES = 4


@struct.dataclass(kw_only=True)
class Rows:
  """What the rows hold so far, and where each of them stops."""

  response_BT: Array
  kind_BT: Array
  logp_BT: Array
  length_B: Array
  finished_B: Array
  given_B: Array  # tokens that were there before
  limit_B: Array  # tokens at most
  key_B: Array
  stop_B: Array | None = None  # states of SamplingConfig.stop_SV
  # Of speculative decoding: forward passes, the tokens that they added, and
  # the tokens that were drafted for them.
  passes_B3: Array | None = None


@struct.dataclass(kw_only=True)
class Slots:
  """The rows that are being decoded, all rows, and the next to begin."""

  rows: Rows
  row_W: Array  # the row of each slot
  step_W: Array  # the token that it gets next
  caches: tuple[models.Cache, ...]
  clock: Array  # steps so far; their keys and values lie in a ring
  begun: Array  # rows that have had a slot: the first ones

  def going(self) -> Array:
    """bool[W]: slots whose row gets another token."""
    limit_W = self.rows.limit_B[self.row_W]
    return (self.step_W < limit_W) & ~self.rows.finished_B[self.row_W]

  @property
  def num_rows(self) -> int:
    """All rows, with and without a slot."""
    return self.rows.length_B.shape[0]

  @property
  def shared(self) -> bool:
    """True if the prompts are those of all groups, not one for each slot."""
    return shares_prompts(self.num_rows, self.row_W.shape[0])

  def waiting(self) -> Array:
    """bool: rows without a slot are left."""
    return self.begun < self.num_rows

  def places(self) -> tuple[Array, Array] | None:
    """Of attend_response: None if no row looks for its prompt's place."""
    slots = self.row_W.shape[0]
    if not self.shared or slots == self.num_rows:
      return None
    slot_M = jnp.zeros(self.num_rows, jnp.int32)
    return self.row_W, slot_M.at[self.row_W].set(jnp.arange(slots))

  def narrowed(self, width: int) -> 'Slots':
    """The slots that are going, in a batch of `width`."""
    # Stable: rows of a group stay neighbours.
    slot_W = jnp.argsort(~self.going(), stable=True)[:width]
    row_W = self.row_W[slot_W]
    caches = [cache.take(slot_W) for cache in self.caches]
    if not shares_prompts(self.num_rows, width):
      group = self.num_rows // caches[0].prompt.num_prompts
      prompt_W = row_W // group if self.shared else slot_W
      caches = [c.replace(prompt=c.prompt.take(prompt_W)) for c in caches]
    return self.replace(
      row_W=row_W, step_W=self.step_W[slot_W], caches=tuple(caches)
    )

  def grown(self, max_tokens: int) -> 'Slots':
    """The slots with room for so many tokens of each row."""
    return self.replace(caches=tuple(c.grown(max_tokens) for c in self.caches))


def shares_prompts(rows: int, width: int) -> bool:
  """True if `width` of all rows attend in the places of all of them."""
  return rows <= MOST_PLACES * width
