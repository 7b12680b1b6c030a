"""The likeliest response that beam search finds, in the place of a greedy one.

A policy trained by DPO is the optimum of a token process with a KL, in which
its log-prob is the advantage of a token, beta log pi(a | s) = Q*(s, a) - V*(s);
so search guided by these values is search by likelihood. Source: "From r to Q*:
Your Language Model is Secretly a Q-Function" (identities re-derived; its
decoder reconstructed).
"""

from collections.abc import Callable
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding.generate import prepare_weights
from rl_jax.decoding.rounding import rounded
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.pieces.logits.transforms import policy_names
from rl_jax.runtime import layout
from rl_jax.types import PAD, POLICY, Array, Trajectories

LEAST = -1e30  # in place of -inf, which subtracted from itself is NaN


class Beams(struct.PyTreeNode):
  """W beams of each prompt, the best first: rows n W ... n W + W - 1."""

  t: Array  # tokens that live beams have
  response_BT: Array
  logp_BT: Array
  total_B: Array  # sum of the log-probs, less one number a prompt; -inf: none
  length_B: Array
  ended_B: Array
  stop_B: Array | None  # state of sampling.stop_SV
  hidden_BD: Array  # predicts token t
  cache: models.Cache


def beam_search(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  *,
  max_new_tokens: int,
  beams: int,
) -> Trajectories:
  """Fills empty rows, one a prompt; called like generate.

  Of all continuations of the W = beams kept sequences of a prompt, ended ones
  as they are, the W with the largest sum of log-probs are kept; the search of a
  prompt is over when the best has ended, as sums only fall. Log-probs are those
  of the transformed distribution at its temperature, lengths do not count, and
  beams=1 is greedy decoding. logp_behaviour is that of the tokens kept.

  Raises: ValueError for groups of several rows, or transforms that read other
    policies.
  """
  del key
  limit = min(traj.response_BT.shape[1], max_new_tokens)

  def make(weights, sampling, inputs):
    del inputs
    return Search(weights, cfg, sampling, beams, limit)

  return search_rows(params, cfg, traj, sampling, make, ())


def search_rows(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  sampling: SamplingConfig,
  make: Callable[[Any, SamplingConfig, Any], 'Search'],
  inputs: Any,
) -> Trajectories:
  """The rows that searches find; raises ValueError as beam_search.

  make: (weights, sampling, inputs of its prompts) -> the search of a shard of
  rows; inputs: arrays [N, ...].
  """
  if traj.group_size != 1 or policy_names(sampling.transforms):
    raise ValueError(
      'beam search has one row a prompt, and no transforms that read other '
      f'policies: group_size = {traj.group_size}, {sampling.transforms}'
    )
  params = rounded(params, sampling.weights)
  begun = models.prefill(params, cfg, traj.prompt_NP, traj.prompt_mask_NP)
  T = traj.response_BT.shape[1]

  def shard(weights, sampling, begun, inputs):
    """Row shards search on their own."""
    hidden, prompt = begun
    return make(weights, sampling, inputs)(hidden, prompt, T)

  by_rows = layout.by_rows(shard, (False, False, True, True), traj.num_prompts)
  found = by_rows(prepare_weights(params, cfg), sampling, begun, inputs)
  response_BT, logp_BT, length_B, ended_B = found
  mine_BT = jnp.arange(T)[None] < length_B[:, None]
  return traj.replace(
    response_BT=response_BT,
    kind_BT=jnp.where(mine_BT, POLICY, PAD),
    logp_behaviour_BT=logp_BT,
    length_B=length_B,
    finished_B=ended_B,
    mask_BT=mine_BT.astype(jnp.float32),
  )


class Search:
  """The loop over tokens of one shard."""

  def __init__(self, weights, cfg, sampling, beams, limit):
    self.weights, self.cfg, self.sampling = weights, cfg, sampling
    self.beams, self.limit = beams, limit

  def __call__(self, hidden_ND, prompt, width):
    """(tokens, log-probs, lengths, ended) of the best beams, [N, ...]."""
    N, W = hidden_ND.shape[0], self.beams
    B = N * W
    first_B = jnp.arange(B) % W == 0
    zeros_B = jnp.zeros(B, jnp.int32)
    start = Beams(
      t=jnp.int32(0),
      response_BT=jnp.zeros((B, width), jnp.int32),
      logp_BT=jnp.zeros((B, width), jnp.float32),
      total_B=jnp.where(first_B, 0.0, -jnp.inf),
      length_B=zeros_B,
      ended_B=jnp.zeros(B, bool),
      stop_B=None if self.sampling.stop_SV is None else zeros_B,
      hidden_BD=jnp.repeat(hidden_ND, W, axis=0),
      cache=models.extend(self.cfg, prompt, B, width),
    )

    def following(s):
      return self.centred(self.step(s))

    s = lax.while_loop(self.goes_on, following, start)
    return tuple(
      x[::W] for x in (s.response_BT, s.logp_BT, s.length_B, s.ended_B)
    )

  def goes_on(self, s):
    """True until the best beam of every prompt has ended."""
    return (s.t < self.limit) & ~s.ended_B[:: self.beams].all()

  def step(self, s):
    """One more token for every beam that is kept and has not ended."""
    W, B = self.beams, s.total_B.shape[0]
    total_BV = self.totals(s)
    V = total_BV.shape[1]
    total_NW, index_NW = lax.top_k(total_BV.reshape(B // W, W * V), W)
    from_NW = index_NW // V + W * jnp.arange(B // W)[:, None]
    return self.follow(s, *map(jnp.ravel, (from_NW, index_NW % V, total_NW)))

  def centred(self, s):
    """Sums less the largest of each prompt.

    In sums of hundreds of log-probs small differences between tokens are lost.
    """
    most_N = s.total_B.reshape(-1, self.beams).max(axis=1)
    most_B = jnp.repeat(jnp.maximum(most_N, LEAST), self.beams)
    return s.replace(total_B=s.total_B - most_B)

  def totals(self, s):
    """Sums of the log-probs of all continuations, [B, V]."""
    logits_BV = models.logits(self.weights, self.cfg, s.hidden_BD)
    logits_BV = self.sampling.transform(logits_BV).astype(jnp.float32)
    total_BV = s.total_B[:, None] + jax.nn.log_softmax(logits_BV)
    # An ended beam continues in one way, which adds nothing.
    V = total_BV.shape[1]
    itself_BV = jnp.where(
      jnp.arange(V)[None] == 0, s.total_B[:, None], -jnp.inf
    )
    return jnp.where(s.ended_B[:, None], itself_BV, total_BV)

  def follow(self, s, from_B, token_B, total_B):
    """Beams of s with a token each; they may be more than those of s."""
    B, token_B = from_B.shape[0], token_B.astype(jnp.int32)
    old = rows(s, from_B, self.cfg)
    live_B = ~old.ended_B
    ends_B = jnp.zeros(B, bool)
    for end in self.sampling.eos_ids:
      ends_B |= token_B == end
    if s.stop_B is not None:
      stop_B = self.sampling.follow(old.stop_B, token_B)
      ends_B |= stop_B < 0
      old = old.replace(stop_B=stop_B)

    def write(x_BT, x_B):
      return x_BT.at[:, s.t].set(jnp.where(live_B, x_B, x_BT[:, s.t]))

    hidden_BD, cache = models.decode_step(
      self.weights, self.cfg, token_B, jnp.full(B, s.t), s.t, old.cache
    )
    gain_B = jnp.where(total_B > -jnp.inf, total_B - old.total_B, 0.0)
    return old.replace(
      t=s.t + 1,
      response_BT=write(old.response_BT, token_B),
      logp_BT=write(old.logp_BT, gain_B),
      total_B=total_B,
      length_B=old.length_B + live_B,
      ended_B=old.ended_B | ends_B,
      hidden_BD=hidden_BD,
      cache=cache,
    )


def rows(s: Beams, index_B: Array, cfg: models.ModelConfig) -> Beams:
  """The beams with these numbers; prompts stay where they are."""
  rest = s.replace(t=None, cache=None)
  taken = jax.tree.map(lambda x: x[index_B], rest)
  return taken.replace(t=s.t, cache=s.cache.take(index_B, cfg))
