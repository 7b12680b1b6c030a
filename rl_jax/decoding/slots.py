"""The rows that are being decoded, and their caches."""

from flax import struct
import jax.numpy as jnp

from rl_jax import models
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array

# Rows attend to the prompts that their groups share in the places of all rows;
# of more places a row it is cheaper to give each row its prompt to itself.
MOST_PLACES = 4


class Rows(struct.PyTreeNode, kw_only=True):
  """The tokens of rows so far, and the limit of each row."""

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


class Slots(struct.PyTreeNode, kw_only=True):
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
    """The `places` of attend_response; None if no row looks for its prompt."""
    return places_of(self.row_W, self.num_rows)

  def narrowed(self, width: int, cfg: models.ModelConfig) -> 'Slots':
    """The slots that are going, in a batch of `width`."""
    # Stable: rows of a group stay neighbours.
    slot_W = jnp.argsort(~self.going(), stable=True)[:width]
    return self.replace(
      row_W=self.row_W[slot_W],
      step_W=self.step_W[slot_W],
      caches=_taken(self.caches, self.row_W, slot_W, self.num_rows, cfg),
    )

  def grown(self, max_tokens: int, platform: Platform) -> 'Slots':
    """The slots with room for so many tokens of each row."""
    caches = tuple(c.grown(max_tokens, platform) for c in self.caches)
    return self.replace(caches=caches)


def shares_prompts(rows: int, width: int) -> bool:
  """True if `width` of all rows attend in the places of all of them."""
  return rows <= MOST_PLACES * width


def places_of(row_W: Array, rows: int) -> tuple[Array, Array] | None:
  """The `places` of attend_response for slots that hold `row_W` of all rows."""
  slots = row_W.shape[0]
  if slots == rows or not shares_prompts(rows, slots):
    return None
  slot_M = jnp.zeros(rows, jnp.int32)
  return row_W, slot_M.at[row_W].set(jnp.arange(slots))


def _taken(caches, row_W, slot_V, rows, cfg):
  """The caches of fewer slots; row_W: the rows of all slots before."""
  found = [cache.take(slot_V, cfg) for cache in caches]
  if not shares_prompts(rows, slot_V.shape[0]):
    prompt_V = slot_V
    if shares_prompts(rows, row_W.shape[0]):
      prompt_V = row_W[slot_V] // (rows // caches[0].prompt.num_prompts)
    found = [c.replace(prompt=c.prompt.take(prompt_V, cfg)) for c in found]
  return tuple(found)
