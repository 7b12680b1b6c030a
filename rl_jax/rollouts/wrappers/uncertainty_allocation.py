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
from rl_jax.types import Trajectories


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
  which multiplies by norms of gradients of the embedding, here 1, and keeps
  the allocation for ten steps.
  """

  confidence: float = ranged(0.95, 0.0, 1.0, open_low=True, open_high=True)
  coef: float = ranged(0.1, 0.0)  # units of the reward
  rounds: int = ranged(1, 1, static=True)
  most: int = ranged(3, 1, static=True)  # chunks of a prompt
  seeds: SolvedSeeds | None = None
  rule: str = chosen('interval', ('interval', 'spread'))
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
    first_N = np.bincount(sorted(seeded), minlength=len(reward_NS))
    left_N = self.most - given_N - first_N
    count = len(reward_NS) - len(seeded)
    more_N = spread_chunks(reward_NS, left_N, count)
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
      chosen_N = self.plan(reward_NS, given_N, G, first)
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


def spread_chunks(
  reward_NS: np.ndarray, left_N: np.ndarray, count: int
) -> np.ndarray:
  """Chunks of each prompt by the spread of its rewards, `count` in all, [N].

  reward_NS: what is known, NaN elsewhere. left_N: chunks that each may still
  take. Where prompts with a spread cannot take them all, the others share the
  rest.
  """
  known_NS = np.isfinite(reward_NS)
  right_N = (np.where(known_NS, reward_NS, 0.0) > 0.5).sum(1)
  share_N = right_N / np.maximum(known_NS.sum(1), 1)
  spread_N = np.sqrt(share_N * (1 - share_N))
  is_spread_N = spread_N > 0
  weight_N = spread_N if is_spread_N.any() else np.ones(len(spread_N))
  wanted_N = count * weight_N / weight_N.sum()
  found_N = np.minimum(np.floor(wanted_N + 1e-9).astype(int), left_N)
  while found_N.sum() < count:
    # Prompts with a spread first, and among them the largest rest.
    rest_N = wanted_N - found_N + 2 * count * is_spread_N
    found_N[np.argmax(np.where(found_N < left_N, rest_N, -np.inf))] += 1
  return found_N
