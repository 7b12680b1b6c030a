"""REX-RAG: failed episodes continue with a reflection, not the answer."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts import clones
from rl_jax.types import POLICY, Array, Trajectories, static

_MIN = 1e-6  # for a share of failed rows of 0, and for rounding


@piece
class ReflectedClones(RolloutWrapper):
  """Failed episodes are cloned, lose their last turn and continue with a
  thought.

  A row with reward <= solved_above is cloned with probability clone_rate. The
  clone's last turn begins with one of `texts` (FORCED tokens, trained) and is
  sampled again, as are all turns after it; the environment repeats the turns
  before. Of the clones those with the highest mean log pi_old of the inserted
  tokens stay, keep_ratio of the rows at most. With alpha the share of clones
  among all rows and e that of failed rows among the sampled ones,

    b_t  = (1 - alpha) pi_old_t + alpha mu_t, the denominator of every ratio
    mu_t = 0 in sampled rows; in clones pi_old_t / e^(1/j) at the j policy
           tokens before the text, pi_old_t after it, and in it 1 at the first
           token, then the share of the texts that begin as it does so far
           which have this token next

  A row that fails in its first turn (j = 0), or without room, has no clone. A
  group has 2 G rows; those that are not clones are in no loss or metric.
  Source: "REX-RAG: Reasoning Exploration with Policy Correction in
  Retrieval-Augmented Generation"; MiliLab/REX-RAG generation.py,
  exploration_distribution.py (by a digest). There only the last answer is cut
  and its thought stays; turns without marks have nothing to tell them apart.
  """

  texts: tuple[str, ...] = static(default=())
  clone_rate: float = ranged(0.2, 0.0, 1.0)
  keep_ratio: float = ranged(0.08, 0.0, 1.0)
  solved_above: float = ranged(0.5)  # in units of the reward
  widens = 2  # see HintGuided
  replays = True  # for episodes, which are repeated
  scores = True
  reads_rewards = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if there is no text, or one cannot be encoded."""
    prompts = context.prompts
    if prompts is None:
      return
    if not self.texts or not all(self.texts):
      raise ValueError(
        f'ReflectedClones.texts = {self.texts!r}: expected texts'
      )
    clones.texts_with_mu(self.texts, prompts.tokenizer)

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups joined with their clones, the round of clones)."""
    serial = np.int32(sampler.next_serial)
    table = clones.texts_with_mu(self.texts, sampler.tokenizer)
    waits, mu_BT = sampler.run(self._clones, traj, sampler.key, serial, *table)
    played, more = sampler.replay(waits, done)
    both, mu_BT = sampler.run(clones.joined, traj, played, mu_BT)
    logp_BT = sampler.logp(both)
    return sampler.run(self._mixed, both, logp_BT, mu_BT), [more]

  def _clones(
    self, traj: Trajectories, key: Array, serial: Array, ids_ML: Any, mu_ML: Any
  ) -> tuple[Trajectories, Array]:
    """(rows that wait after a text, its mu [B, T]); others are finished."""
    keys_B = randomness.row_keys(
      randomness.purpose_key(key, randomness.CUTS), traj.row_id_B2
    )

    def draw(n):
      return randomness.token_uniform(keys_B, jnp.full(len(keys_B), n))

    text_B = jnp.floor(draw(1) * len(ids_ML)).astype(jnp.int32)
    failed_B = (traj.valid_B > 0) & (traj.reward_B <= self.solved_above)
    wanted_B = failed_B & (draw(0) < self.clone_rate)
    return clones.behind_texts(
      traj, wanted_B, serial, ids_ML[text_B], mu_ML[text_B]
    )

  def _mixed(
    self, both: Trajectories, logp_BT: Array, mu_BT: Array
  ) -> Trajectories:
    """The clones that stay, and log b as the log-prob of what drew each row."""
    clone_B, valid_B = both.extras['foreign_B'] > 0, both.valid_B > 0
    text_BT = mu_BT > 0
    liked_B = masked_mean(logp_BT, text_BT.astype(jnp.float32), axis=1)
    there_B = clone_B & valid_B
    order_B = jnp.argsort(jnp.where(there_B, -liked_B, jnp.inf))
    most = jnp.floor(self.keep_ratio * (len(clone_B) // 2) + _MIN)
    live_B = jnp.where(
      clone_B, there_B & (jnp.argsort(order_B) < most), valid_B
    )
    alpha = (live_B & clone_B).sum() / jnp.maximum(live_B.sum(), 1)
    failed_B = (both.reward_B <= self.solved_above).astype(jnp.float32)
    error = masked_mean(failed_B, both.valid_B * ~clone_B)
    pi_BT = jnp.exp(logp_BT)
    before_BT = (jnp.cumsum(text_BT, axis=1) == 0) & (both.kind_BT == POLICY)
    j_B1 = jnp.maximum(before_BT.sum(axis=1, keepdims=True), 1)
    more_B1 = jnp.maximum(error, _MIN) ** (-1.0 / j_B1)
    probe_BT = jnp.where(before_BT, more_B1 * pi_BT, pi_BT)
    probe_BT = jnp.where(text_BT, mu_BT, probe_BT) * clone_B[:, None]
    mixture_BT = (1.0 - alpha) * pi_BT + alpha * probe_BT
    live = live_B.astype(jnp.float32)
    mask_BT = both.mask_BT * live[:, None]
    tiny = jnp.finfo(jnp.float32).tiny  # log pi may be -inf in float32
    mixture_BT = jnp.maximum(jnp.where(mask_BT > 0, mixture_BT, 1.0), tiny)
    return both.replace(
      mask_BT=mask_BT,
      valid_B=live,
      weight_B=both.weight_B * live,
      logp_behaviour_BT=jnp.log(mixture_BT),
      extras={**both.extras, 'mixture_B': jnp.ones_like(live)},
    )
