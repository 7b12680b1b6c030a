"""Beam search that ranks by a heuristic of what each token leads to (DeAL)."""

from collections.abc import Callable
import dataclasses
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding import beam_search
from rl_jax.decoding.beam_search import Beams, Search
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.types import Array, Trajectories

# (inputs of the row's prompt, response_BT, length_B) -> h [B].
Heuristic = Callable[[Any, Array, Array], Array]


@dataclasses.dataclass(frozen=True)
class LookAheadConfig:
  """The width and the depth of the search of look_ahead.

  beams: that are kept of a prompt. candidates: tokens that continue each of
  them. tokens: that continue each candidate greedily. max_new_tokens: of a row.
  """

  beams: int
  candidates: int
  tokens: int
  max_new_tokens: int


def look_ahead(
  params: dict[str, Any],
  cfg: models.ModelConfig,
  traj: Trajectories,
  sampling: SamplingConfig,
  heuristic: Heuristic,
  inputs: Any,
  *,
  weight: Array | float,
  search: LookAheadConfig,
) -> Trajectories:
  """Fills empty rows, one a prompt, as beam_search does.

    score = sum of log-probs of the kept tokens + weight h(kept, looked ahead)

  Each of the beams of a prompt is continued by its likeliest tokens, as many as
  candidates, each of these greedily by so many tokens more, and those of the
  largest scores are kept, without the tokens looked ahead; ended ones stay as
  they are. The search is over when all kept beams have ended, and the first one
  is the response. h = -inf drops a beam where others are left; a number added
  to h changes nothing. With weight 0 and candidates >= beams it is beam_search;
  with one of each it is greedy decoding.

  heuristic: a reward model or a rule, jittable, read with `inputs`, arrays
  [N, ...], as rows of their prompts. Tokens after length_B are not of a row.
  Source: "DeAL: Decoding-time Alignment for Large Language Models",
  reconstructed from the abstract.
  Raises: ValueError as beam_search, and for numbers of beams, candidates or
    tokens that do not fit.
  """
  beams, candidates = search.beams, search.candidates
  if not (
    beams >= 1 and 1 <= candidates <= cfg.vocab_size and search.tokens >= 0
  ):
    raise ValueError(
      f'look_ahead: beams = {beams} must be 1 at least, candidates = '
      f'{candidates} in [1, {cfg.vocab_size}] and tokens = {search.tokens} not '
      'below 0'
    )
  limit = min(traj.response_BT.shape[1], search.max_new_tokens)

  def make(weights, sampling, inputs):
    single = Search(weights, cfg, sampling, 1, limit)
    return _LookAhead(single, search, heuristic, inputs, weight)

  return beam_search.search_rows(params, cfg, traj, sampling, make, inputs)


class _LookAhead(Search):
  """single: the search with one beam, which decodes greedily."""

  def __init__(
    self,
    single: Search,
    search: LookAheadConfig,
    heuristic: Heuristic,
    inputs: Any,
    weight: Array | float,
  ):
    super().__init__(
      single.weights, single.cfg, single.sampling, search.beams, single.limit
    )
    self.single, self.inputs = single, inputs
    self.weight, self.heuristic = weight, heuristic
    self.candidates, self.tokens = search.candidates, search.tokens

  def goes_on(self, s):
    """True until all beams have ended: a smaller score may become the best."""
    return (s.t < self.limit) & ~s.ended_B.all()

  def step(self, s):
    """The best of all candidates of each prompt."""
    K, W = self.candidates, self.beams
    B = s.total_B.shape[0]
    total_BK, token_BK = lax.top_k(self.totals(s), K)
    from_BK = jnp.broadcast_to(jnp.arange(B)[:, None], (B, K))
    found = self.follow(s, *map(jnp.ravel, (from_BK, token_BK, total_BK)))
    score_NC = self.scores(found).reshape(B // W, W * K)
    _, best_NW = lax.top_k(score_NC, W)
    best_NW += W * K * jnp.arange(B // W)[:, None]
    return beam_search.rows(found, best_NW.ravel(), self.cfg)

  def scores(self, found: Beams) -> Array:
    """Scores of the candidates; -inf where there is no beam."""
    end = jnp.minimum(found.t + self.tokens, self.limit)
    ahead = lax.while_loop(
      lambda s: (s.t < end) & ~s.ended_B.all(), self.single.step, found
    )
    repeats = found.total_B.shape[0] // found.cache.prompt.mask_NP.shape[0]
    inputs = jax.tree.map(lambda x: jnp.repeat(x, repeats, axis=0), self.inputs)
    h_B = self.heuristic(inputs, ahead.response_BT, ahead.length_B)
    h_B = jnp.where(self.weight == 0, 0.0, self.weight * h_B)  # 0 * -inf
    return found.total_B + h_B
