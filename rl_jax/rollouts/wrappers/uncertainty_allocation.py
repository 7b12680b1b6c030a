"""XRPO: more samples for prompts whose mean reward is uncertain."""

from typing import Any

import numpy as np

from rl_jax.checks import ranged
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
  """

  confidence: float = ranged(0.95, 0.0, 1.0, open_low=True, open_high=True)
  coef: float = ranged(0.1, 0.0)  # units of the reward
  rounds: int = ranged(1, 1, static=True)
  most: int = ranged(3, 1, static=True)  # chunks of a prompt
  seeds: SolvedSeeds | None = None
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
