"""XRPO: more samples for prompts whose mean reward is uncertain."""

from collections.abc import Collection
from typing import Any

import numpy as np

from rl_jax.checks import chosen, ranged
from rl_jax.decoding.stop import make_stop
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.rollouts.join import join_chunks
from rl_jax.rollouts.solved import SolvedExamples
from rl_jax.rollouts.wrappers.priorities import Priorities
from rl_jax.rollouts.wrappers.solved_seeds import SolvedSeeds
from rl_jax.types import Trajectories, static


@piece
class UncertaintyAllocation(Priorities):
  """G samples of each of N prompts, then `rounds` of N chunks of G more.

    h(n) = t_{(1 + confidence) / 2, n - 1} s / sqrt(n)
    priority = h(n) - h(n + G) + coef sqrt(log(1 + samples so far) / n)

  s: standard deviation of the prompt's valid rewards (ddof 1), n their number.
  A round gives its chunks one by one to the prompt with the highest priority,
  n counting the chunks already given; a prompt gets `most` chunks at most, over
  all rounds. Groups have G (1 + most) rows; those that were not drawn are
  invalid and weigh nothing. With most = rounds every prompt gets as many.

  With `seeds` each prompt whose first G samples failed has the first chunk of
  the first round, after solved examples where there are some. These rows join
  the group under the prompt without examples, and the policy of their ratio is
  what they were sampled from, as in guided.py.
  Source: "XRPO: Pushing the Limits of GRPO with Targeted Exploration and
  Exploitation", from reviews; there G = 1 after the first round. coef,
  confidence, rounds, the inside of the logarithm and the prompt under which
  seeded rows are trained are not known.

  rule 'spread' (CurES) gives the chunks of a round in proportion to the
  deviation of a gradient whose norm is that of all others, p the share of valid
  rewards above 1/2:

    chunks_n = N sqrt(p_n (1 - p_n)) / sum_m sqrt(p_m (1 - p_m))

  rounded down, and one more each for the largest rests, `most` at most; prompts
  that are all right or all wrong get none while others can take some. Source:
  "CurES: From Gradient Analysis to Efficient Curriculum Learning for Reasoning
  LLMs"; ZexuSun/CurES stage_0_init_difficulty_sample_size.py, by a digest,
  which keeps the allocation for ten steps. There the norms g of the gradients
  of the embedding by log pi(response) are measured, as here with `norms`, at
  the cost of a backward pass for each sample:

    sigma^2 = p (1 - p)^2 E[g_c^2] + p^2 (1 - p) E[g_w^2]
              - p^2 (1 - p)^2 (E[g_c] - E[g_w])^2

  in place of p (1 - p); g_c of right samples, g_w of wrong ones, 0 where there
  is none.
  """

  confidence: float = ranged(0.95, 0.0, 1.0, open_low=True, open_high=True)
  coef: float = ranged(0.1, 0.0)  # units of the reward
  rounds: int = ranged(1, 1, static=True)
  most: int = ranged(3, 1, static=True)  # chunks of a prompt
  seeds: SolvedSeeds | None = None
  rule: str = chosen('interval', ('interval', 'spread'))
  norms: bool = static(default=False)  # of gradients, with rule 'spread'
  reads_rewards = True

  @property
  def widens(self) -> int:
    """See HintGuided."""
    return 1 + self.most

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if chunks cannot all be given, or have no spread."""
    rollout = context.rollout
    if self.seeds is not None:
      self.seeds.check(context)
    if self.most < self.rounds:
      raise ValueError(
        f'method.rollout: UncertaintyAllocation.most = {self.most} chunks of a '
        f'prompt cannot take {self.rounds} rounds: it must be that many'
      )
    if self.norms and (self.rule != 'spread' or self.rounds > 1):
      raise ValueError(
        'method.rollout: UncertaintyAllocation.norms = True with rule = '
        f'{self.rule!r} and rounds = {self.rounds}: norms of gradients are '
        "measured for one round by 'spread'"
      )
    if rollout is not None and rollout.group_size < 2:
      raise ValueError(
        'method.rollout: UncertaintyAllocation needs rollout.group_size >= 2, '
        f'got {rollout.group_size}'
      )

  def make_memory(self, prompts: Any, rollout: Any) -> SolvedExamples | None:
    """The store of solved examples, if prompts are put after them."""
    if self.seeds is None:
      return None
    stop = make_stop(prompts.tokenizer, rollout.stop)
    return SolvedExamples(
      prompts, stop, self.seeds.places, rollout.max_response_tokens
    )

  def plan(
    self,
    reward_NS: np.ndarray,
    given_N: np.ndarray,
    chunk: int,
    seeded: Collection[int] = (),
  ) -> np.ndarray:
    """See Priorities."""
    if self.rule == 'interval':
      return super().plan(reward_NS, given_N, chunk, seeded)
    return self._by_spread(reward_NS, given_N, seeded, None)

  def _by_spread(self, reward_NS, given_N, seeded, norm_NS):
    """norm_NS: of gradients, of the rewards that are known; None: 1."""
    first_N = np.bincount(sorted(seeded), minlength=len(reward_NS))
    left_N = self.most - given_N - first_N
    count = len(reward_NS) - len(seeded)
    more_N = spread_chunks(reward_NS, left_N, count, norm_NS)
    return np.repeat(np.arange(len(reward_NS)), first_N + more_N).astype(
      np.int32
    )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups with all their chunks, the rounds of further ones)."""
    N, G = traj.num_prompts, traj.group_size
    reward_NS = np.full((N, G * (1 + self.most)), np.nan)
    reward_NS[:, :G] = done.reward_NG
    norm_NS = None
    if self.norms:
      norm_NS = np.full(reward_NS.shape, np.nan)
      norm_NS[:, :G] = sampler.gradient_norms(traj).reshape(N, G)
    place_NM = np.full((N, self.most), -1, np.int32)  # number of the chunk
    drawn, rounds, seeded, foreign_NM = [], [], {}, None
    if self.seeds is not None:
      self.seeds.remember(done, sampler)
      seeded = self.seeds.examples(done, sampler)
      foreign_NM = np.zeros(place_NM.shape, np.float32)
      foreign_NM[list(seeded), 0] = 1.0
    for number in range(self.rounds):
      given_N = (place_NM >= 0).sum(1)
      first = dict(seeded) if number == 0 else {}
      if norm_NS is None:
        chosen_N = self.plan(reward_NS, given_N, G, first)
      else:
        chosen_N = self._by_spread(reward_NS, given_N, first, norm_NS)
      examples = [first.pop(int(n), done.examples[n]) for n in chosen_N]
      more, found = sampler.sample(examples, done.indices[chosen_N])
      for chunk, n in enumerate(chosen_N):
        m = (place_NM[n] >= 0).sum()
        place_NM[n, m] = number * N + chunk
        reward_NS[n, G * (m + 1) : G * (m + 2)] = found.reward_NG[chunk]
      if self.seeds is not None:
        self.seeds.remember(found, sampler)
      drawn.append(more)
      rounds.append(found)
    arrays = traj, tuple(drawn), place_NM, foreign_NM
    return sampler.run(join_chunks, *arrays), rounds


def deviations(
  reward_NS: np.ndarray, norm_NS: np.ndarray | None = None
) -> np.ndarray:
  """sigma of the gradient of each prompt, see UncertaintyAllocation, [N].

  norm_NS: of the gradients of the known rewards; None: all are 1.
  """
  known_NS = np.isfinite(reward_NS)
  right_NS = known_NS & (np.where(known_NS, reward_NS, 0.0) > 0.5)
  share_N = right_NS.sum(1) / np.maximum(known_NS.sum(1), 1)
  if norm_NS is None:
    return np.sqrt(share_N * (1 - share_N))

  def mean(x_NS, among_NS):
    total_N = np.where(among_NS, x_NS, 0.0).sum(1)
    return total_N / np.maximum(among_NS.sum(1), 1)

  wrong_NS, other_N = known_NS & ~right_NS, 1 - share_N
  apart_N = mean(norm_NS, right_NS) - mean(norm_NS, wrong_NS)
  square_N = share_N * other_N**2 * mean(norm_NS**2, right_NS)
  square_N += share_N**2 * other_N * mean(norm_NS**2, wrong_NS)
  square_N -= (share_N * other_N * apart_N) ** 2
  return np.sqrt(np.maximum(square_N, 0.0))


def spread_chunks(
  reward_NS: np.ndarray,
  left_N: np.ndarray,
  count: int,
  norm_NS: np.ndarray | None = None,
) -> np.ndarray:
  """Chunks of each prompt by the spread of its rewards, `count` in all, [N].

  reward_NS: what is known, NaN elsewhere. left_N: chunks that each may still
  take. norm_NS: of gradients, see deviations. Where prompts with a spread
  cannot take them all, the others share the rest.
  """
  spread_N = deviations(reward_NS, norm_NS)
  is_spread_N = spread_N > 0
  weight_N = spread_N if is_spread_N.any() else np.ones(len(spread_N))
  wanted_N = count * weight_N / weight_N.sum()
  found_N = np.minimum(np.floor(wanted_N + 1e-9).astype(int), left_N)
  while found_N.sum() < count:
    # Prompts with a spread first, and among them the largest rest.
    rest_N = wanted_N - found_N + 2 * count * is_spread_N
    found_N[np.argmax(np.where(found_N < left_N, rest_N, -np.inf))] += 1
  return found_N
