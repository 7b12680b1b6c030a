"""RuleReasoner: domains are drawn more often the less they are solved."""

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.batches import check_fits, check_places
from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary, static


@piece
class DomainGap(Selector):
  """Shares of domains from a softmax of how far their rewards lie below a goal.

    mean_d = sum_j (sum of rewards of d in batch j) / (j + 1) / samples of d
    v_d = max(0, goal (1 / M) sum_{j < M} 1 / (j + 1) - mean_d)
    w = softmax(v / tau)

  over the last M = `memory` batches, j = 0 the newest, since the last change of
  the shares. Every `every` batches the shares become w and the memory is empty;
  before the first change they are those of the domains' prompts. A batch has
  floor(count w_d) prompts of domain d and one more of the heaviest ones until
  it is full. Within a domain every prompt comes once before one returns, at
  random; where a domain has too few, others fill the batch. Failed
  verifications (NaN) do not count. A domain that the memory lacks has mean 0
  (ours; in the code it is never drawn again).
  by 'place': prompt i is of domain i mod `domains`, as of tasks.Levels, so that
  no prompt may be skipped. by 'part': the domains are the parts of a
  tasks.Mixture, whose weights then do not count; it says their `sizes`.
  Source: "RuleReasoner: Reinforced Rule-based Reasoning via Domain-aware
  Dynamic Sampling"; bigai-nlco/RuleReasoner ray_trainer.py, with its harmonic
  weights of age. It adds a constant to v, which a softmax does not see.
  Raises ValueError if there are more domains than prompts.
  """

  domains: int = ranged(2, 2, static=True)
  memory: int = ranged(4, 1, static=True)  # batches
  every: int = ranged(8, 1, static=True)  # batches
  tau: float = ranged(0.3, 0.0, open_low=True)  # units of the reward
  goal: float = ranged(1.0, 0.0)  # units of the reward
  by: str = chosen('place', ('place', 'part'))
  sizes: tuple[int, ...] = static(default=())  # prompts of the parts

  @property
  def mixes(self) -> bool:
    """See Selector."""
    return self.by == 'part'

  def with_parts(self, sizes: tuple[int, ...]) -> Self:
    """The selector of these parts."""
    return dataclasses.replace(self, domains=len(sizes), sizes=sizes)

  def _domain(self, ids: Array) -> Array:
    """The domain of each prompt."""
    if not self.mixes:
      return ids % self.domains
    ends_D = jnp.cumsum(jnp.asarray(self.sizes))
    return jnp.searchsorted(ends_D, ids, side='right')

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if a skipped prompt shifts the domains of others."""
    prompts = context.prompts
    if prompts is None:
      return
    if not self.mixes:
      check_places(type(self).__name__, prompts)
    elif not self.sizes:
      raise ValueError(
        "method.selector: DomainGap.by = 'part' needs a tasks.Mixture, got "
        f'{type(prompts.task).__name__}'
      )

  def init(self, num_prompts: int) -> dict[str, Array]:
    """Shares by the numbers of prompts, and an empty memory."""
    if num_prompts < self.domains:
      raise ValueError(
        f'DomainGap.domains = {self.domains}: the task has {num_prompts} '
        'prompts, less than one a domain'
      )
    if self.sizes and sum(self.sizes) != num_prompts:
      raise ValueError(
        f'DomainGap.sizes = {self.sizes}: the task has {num_prompts} prompts'
      )
    domain_N = self._domain(jnp.arange(num_prompts))
    return {
      'share': jnp.bincount(domain_N, length=self.domains) / num_prompts,
      'rewards': jnp.zeros((self.memory, self.domains)),
      'samples': jnp.zeros((self.memory, self.domains)),
      'batches': jnp.zeros((), jnp.int32),
      'drawn': jnp.zeros((), jnp.int32),
      'visits': jnp.zeros(num_prompts, jnp.int32),
    }

  def _shares(self, rewards_MD: Array, samples_MD: Array) -> Array:
    """w [D] of the sums of rewards and samples, the newest batch first."""
    age_M = 1.0 / (1.0 + jnp.arange(self.memory))
    total_D = (age_M[:, None] * rewards_MD).sum(0)
    mean_D = safe_divide(total_D, samples_MD.sum(0))
    gap_D = jnp.maximum(self.goal * age_M.mean() - mean_D, 0.0)
    return jax.nn.softmax(gap_D / self.tau)

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    visits_N = state['visits']
    check_fits(count, visits_N.shape[0])
    # Of whole numbers, rounding aside.
    quota_D = jnp.floor(count * state['share'] + 1e-4).astype(jnp.int32)
    heavy_D = jnp.argsort(jnp.argsort(-state['share'], stable=True))
    quota_D += heavy_D < count - quota_D.sum()
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, state['drawn'])
    ids = jax.random.permutation(key, visits_N.shape[0])
    ids = ids[jnp.argsort(visits_N[ids], stable=True)]
    domain_N = self._domain(ids)
    own_ND = jax.nn.one_hot(domain_N, self.domains, dtype=jnp.int32)
    place_N = (own_ND * jnp.cumsum(own_ND, axis=0)).sum(1)  # from 1
    spare_N = place_N > quota_D[domain_N]
    found = ids[jnp.argsort(spare_N, stable=True)[:count]].astype(jnp.int32)
    return found, {
      **state,
      'drawn': state['drawn'] + 1,
      'visits': visits_N.at[found].add(1),
    }

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """Remembers the rewards of a batch; every so often new shares."""
    reward_NG = jnp.asarray(summary.reward_NG)
    known_NG = jnp.isfinite(reward_NG)
    own_ND = jax.nn.one_hot(self._domain(jnp.asarray(ids)), self.domains)
    sums_N = jnp.where(known_NG, reward_NG, 0.0).sum(1)

    def push(name: str, new_N: Array):
      return jnp.concatenate([(new_N @ own_ND)[None], state[name][:-1]])

    rewards = push('rewards', sums_N)
    samples = push('samples', known_NG.sum(1).astype(jnp.float32))
    batches = state['batches'] + 1
    due = batches % self.every == 0
    share = jnp.where(due, self._shares(rewards, samples), state['share'])
    return {
      **state,
      'share': share,
      'rewards': jnp.where(due, 0.0, rewards),
      'samples': jnp.where(due, 0.0, samples),
      'batches': batches,
    }
