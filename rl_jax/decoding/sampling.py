"""Draws tokens from logits: the settings, and the draw."""

import math
from typing import Any, NamedTuple

import chex
from flax import struct
from jax import lax
import jax.numpy as jnp

from rl_jax.checks import check_fields, ranged
from rl_jax.decoding.rounding import TRAINER
from rl_jax.decoding.stop import Stop
from rl_jax.models.products import row_sums
from rl_jax.pieces.logits.transforms import (
  apply_transforms,
  policy_names,
  read_values,
)
from rl_jax.runtime import layout
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array, static

CPU = Platform()


class SamplingConfig(struct.PyTreeNode, kw_only=True):
  """The settings by which tokens are drawn.

  temperature comes first, then the transforms, in order. greedy takes the
  most likely token; logp is then still that of the distribution. eos_ids end
  a response and are part of it. stop_SV: the table of a `stop.Stop`, or None.
  weights: how those of the sampler are rounded, see `rounding`.
  """

  temperature: float = ranged(1.0, 0.0, open_low=True)
  greedy: bool = static(default=False)
  eos_ids: tuple[int, ...] = static(default=())
  transforms: tuple = ()
  stop_SV: Any = None
  weights: str = static(default=TRAINER)

  def __post_init__(self):
    check_fields(self)

  @classmethod
  def ended_by(cls, stop: Stop, **fields: Any) -> 'SamplingConfig':
    """A configuration whose responses end as a Stop says."""
    return cls(eos_ids=stop.ids, stop_SV=stop.table, **fields)

  @property
  def may_end(self) -> bool:
    """False: responses end by their length only."""
    return bool(self.eos_ids) or self.stop_SV is not None

  def follow(self, state_B: Array, token_B: Array) -> Array:
    """The states of stop_SV after tokens; negative if a text is whole."""
    table_SV = jnp.asarray(self.stop_SV)
    token_B = jnp.minimum(token_B, table_SV.shape[1] - 1)
    state_B = jnp.where(state_B < 0, ~state_B, state_B)
    return table_SV[state_B, token_B].astype(state_B.dtype)

  @property
  def reads_values(self) -> bool:
    """Returns whether a transform reads outputs of the policy's value head."""
    return read_values(self.transforms)

  def transform(
    self, logits_RV: Array, *others: Array, values_RH: Array | None = None
  ) -> Array:
    """The logits that tokens are drawn from; replayed when scoring.

    others: logits of the other policies that transforms read, in the order of
      policies_of; none where the parameters hold none. values: see
      apply_transforms.
    """
    names = policy_names(self.transforms) if others else ()
    return apply_transforms(
      self.transforms,
      self.temperature,
      logits_RV,
      dict(zip(names, others, strict=True)),
      values_RH,
    )


def sample_token(
  logits_BV: Array,
  uniform_B: Array,
  greedy: bool = False,
  platform: Platform = CPU,
) -> tuple[Array, Array]:
  """Draws a token per row by inverse CDF: (int32[B], its logp, float32[B]).

  One uniform per token instead of V Gumbel draws; first the block of tokens,
  by the blocks' sums, then the token in it. No array but the logits has V
  columns, and where those are split over devices, blocks are too: [B, blocks]
  and [B, block] numbers are sent. A token of probability 0 cannot be drawn.
  platform: where programs run, see `_masses`.
  """
  chex.assert_rank([logits_BV, uniform_B], [2, 1])
  logits_BKC = _in_blocks(logits_BV)
  block = logits_BKC.shape[2]
  mass = _masses(logits_BKC, platform)
  running_BK = jnp.cumsum(mass.mass_BK, axis=-1)
  total_B = running_BK[:, -1]
  if greedy:
    token_B = _most_likely(logits_BV, logits_BKC, mass.top_BK)
    logp_B = -jnp.log(total_B)  # at the peak
    return token_B.astype(jnp.int32), logp_B
  target_B = uniform_B * total_B
  k_B = _first_above(mass.mass_BK, running_BK, target_B)
  before_B = jnp.where(k_B > 0, _pick(running_BK, k_B - 1), 0.0)
  logits_BC, most_B = _pick(logits_BKC, k_B), mass.peak_B
  if mass.top_BK is not None:  # masses in the block are below its own maximum
    most_B = _pick(mass.top_BK, k_B)
  mass_BC = jnp.exp(logits_BC - most_B[:, None])
  running_BC = jnp.cumsum(mass_BC, axis=-1)
  inside_B = target_B - before_B
  if mass.top_BK is not None:
    inside_B *= jnp.exp(mass.peak_B - most_B)
  c_B = _first_above(mass_BC, running_BC, inside_B)
  logp_B = _pick(logits_BC, c_B) - mass.peak_B - jnp.log(total_B)
  return (k_B * block + c_B).astype(jnp.int32), logp_B


def log_probs(
  logits_RV: Array, token_R: Array, platform: Platform = CPU
) -> Array:
  """log softmax(logits) of given tokens, float32[R]; -inf where they have none.

  In blocks, as sample_token, so that no array but the logits has V columns.
  """
  logits_RKC = _in_blocks(logits_RV)
  block = logits_RKC.shape[2]
  if reads_once(platform):
    mass = _masses(logits_RKC, platform)
    peak_R, total_R = mass.peak_B, mass.mass_BK.sum(axis=1)
  else:
    peak_R = logits_RKC.max(axis=(1, 2))
    total_R = jnp.exp(logits_RKC - peak_R[:, None, None]).sum(axis=(1, 2))
  logits_RC = _pick(logits_RKC, token_R // block)
  return _pick(logits_RC, token_R % block) - peak_R - jnp.log(total_R)


def reads_once(platform: Platform) -> bool:
  """Returns whether maxima and sums of logits are found in one pass.

  On CUDA, where XLA has one kernel for both. On CPU the two passes are
  vectorised and their bits are kept; XLA for TPU copies the logits for either.
  """
  return platform.name == 'cuda'


class _Masses(NamedTuple):
  """Sums of exp(logit - peak) of blocks, and the blocks' maxima if known."""

  peak_B: Array
  mass_BK: Array
  top_BK: Array | None


def _masses(logits_BKC: Array, platform: Platform) -> _Masses:
  if not reads_once(platform):
    peak_B = logits_BKC.max(axis=(1, 2))
    masses_BKC = jnp.exp(logits_BKC - peak_B[:, None, None])
    mass_BK = row_sums(masses_BKC, platform.steady_sums)
    return _Masses(peak_B, mass_BK, None)
  top_BK, sum_BK = lax.reduce(
    (logits_BKC, jnp.ones_like(logits_BKC)),
    (jnp.float32(-jnp.inf), jnp.float32(0.0)),
    _merged,
    (2,),
  )
  peak_B = top_BK.max(axis=1)
  mass_BK = sum_BK * jnp.exp(top_BK - peak_B[:, None])
  return _Masses(peak_B, mass_BK, top_BK)


def _merged(one: tuple, other: tuple) -> tuple[Array, Array]:
  """Maximum, and the sum of exponentials below it, of both parts."""
  top = jnp.maximum(one[0], other[0])

  def below(part):  # equal parts may be infinite
    return jnp.where(part[0] == top, part[1], part[1] * jnp.exp(part[0] - top))

  return top, below(one) + below(other)


def _most_likely(
  logits_BV: Array, logits_BKC: Array, top_BK: Array | None
) -> Array:
  """The first token with the largest logit."""
  if top_BK is None:
    return jnp.argmax(logits_BV, axis=-1)
  k_B = jnp.argmax(top_BK, axis=-1)
  c_B = jnp.argmax(_pick(logits_BKC, k_B), axis=-1)
  return k_B * logits_BKC.shape[2] + c_B


def _in_blocks(logits_BV: Array) -> Array:
  """float32[B, blocks, tokens of a block]."""
  (B, V), block = logits_BV.shape, block_size(logits_BV.shape[1])
  logits_BKC = logits_BV.astype(jnp.float32).reshape(B, V // block, block)
  return layout.constrain(logits_BKC, 'rows', 'vocab', None)


def block_size(vocab_size: int) -> int:
  """Tokens a block: near the root of what a device has, which they divide."""
  columns = vocab_size // layout.parts(vocab_size, 'vocab')
  root = math.isqrt(columns)
  return next(size for size in range(root, 0, -1) if columns % size == 0)


def _first_above(mass_RK: Array, running_RK: Array, target_R: Array) -> Array:
  """The first entry with mass whose running sum is above the target.

  If rounding leaves none above it, the last one with mass. Running sums need
  not be monotone: they are added up in a tree.
  """
  size = mass_RK.shape[1]
  index_1K, has_mass_RK = jnp.arange(size)[None], mass_RK > 0
  above_RK = has_mass_RK & (running_RK > target_R[:, None])
  first_R = jnp.where(above_RK, index_1K, size).min(axis=-1)
  return jnp.minimum(first_R, jnp.where(has_mass_RK, index_1K, 0).max(axis=-1))


def _pick(x: Array, index_R: Array) -> Array:
  """x[r, index[r]] of every row r; the index is cut to what there is."""
  index = index_R.reshape(-1, *(1,) * (x.ndim - 1))
  return jnp.take_along_axis(x, index, axis=1, mode='clip')[:, 0]
