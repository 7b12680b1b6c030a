"""RLGF: a guide writes the beginning or the end of responses."""

from typing import Any

import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.checks import chosen, ranged
from rl_jax.pieces.logits.other_policy import OtherPolicy
from rl_jax.pieces.logits.transforms import TopP
from rl_jax.pieces.ops.masking import zero_masked
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.forced import cut_lengths
from rl_jax.rollouts.wrappers import single_responses
from rl_jax.tasks import draws
from rl_jax.types import FORCED, PAD, Array, Trajectories, static

BEGINS, ENDS = 'begins', 'ends'


@piece
class GuideRollIn(RolloutWrapper):
  """Rows are cut, and a guide writes one of their parts.

    l = 0 with probability 1 - beta, else uniform on {1, ..., L - 1}

  L is the length of a whole response of whoever begins. guide 'begins' (PPO++):
  its l tokens are FORCED, and the policy continues. 'ends' (AggreVaTeD): the
  policy writes l tokens and the guide the rest; GuidedTokens says which of them
  train the policy and which the values. Fills extras 'prefix_B', l, and
  'finished_by_guide_B'.

  schedule: 'mixed' (LOLS) lets the guide begin in a share tau of the rollouts,
  drawn, and end in the others; 'switched' (D2LOLS) lets it end in the first
  `tau` rollouts, and begin afterwards; 'fixed' is always as `guide` says. Every
  round of dynamic sampling counts as a rollout.
  path: of the guide, a work or model directory; None: the initial policy.
  Source: "Learning to Generate Better Than Your LLM"; Cornell-RL/tril
  aggrevated.py, lols.py, d2lols.py, ppo_pp.py (by a digest). There LOLS has a
  critic for each part; here both train one.
  """

  guide: str = chosen(BEGINS, (BEGINS, ENDS))
  schedule: str = chosen('fixed', ('fixed', 'mixed', 'switched'))
  path: str | None = static(default=None)
  beta: float = ranged(0.8, 0.0, 1.0)
  tau: float = ranged(0.8, 0.0)  # share, or number of rollouts
  top_p: float = ranged(0.92, 0.0, 1.0, open_low=True)  # of the guide

  @property
  def opponent(self) -> OtherPolicy:
    """Returns what the guide's tokens are drawn from."""
    return OtherPolicy(path=self.path)

  @property
  def policies(self) -> dict[str, Any]:
    """The guide."""
    return self.opponent.policies

  @property
  def _may_end(self) -> bool:
    """Returns whether the guide ends rows in some rollout."""
    return self.guide == ENDS or self.schedule != 'fixed'

  @property
  def scores(self) -> bool:
    """Returns whether it reads log-probs of the policy before the update."""
    return self._may_end

  @property
  def extends(self) -> bool:
    """Returns whether it changes the log-probs of judged rows."""
    return self._may_end

  def check(self, context: CheckContext) -> None:
    """Raises ValueError for a share above 1, and rows that are not whole."""
    if self.schedule == 'mixed' and self.tau > 1:
      raise ValueError(
        f'method.rollout.tau = {self.tau}: schedule = "mixed" has a share of '
        'rollouts, from 0 to 1'
      )
    single_responses.refuse(
      self,
      'cuts single responses',
      context.rollout,
      'turns',
      'window_tokens',
      'staleness',
    )

  def _begins(self, rollout: int) -> bool:
    """Returns whether the guide begins rows; rollouts count from 0."""
    if self.schedule == 'fixed':
      return self.guide == BEGINS
    if self.schedule == 'switched':
      return rollout >= self.tau
    return draws.Draws('guide roll-in', rollout).uniform() < self.tau

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Rows with the part before the cut, or whole ones of both writers."""
    begins = self._begins(sampler.next_serial // sampler.num_prompts)
    longest = traj.response_BT.shape[1]
    guide = (self.opponent, TopP(p=self.top_p))
    first = guide if begins else ()
    written = sampler.write(traj, longest, first)
    cut = self._cut_forced if begins else self._cut_own
    traj = sampler.run_rows(cut, written, sampler.key)
    return traj if begins else sampler.write(traj, longest, guide)

  def _cut(self, traj: Trajectories, key: Array) -> tuple[Trajectories, Array]:
    """(unfinished rows up to their cuts, the tokens that are kept)."""
    keys_B = randomness.row_keys(
      randomness.purpose_key(key, randomness.CUTS), traj.row_id_B2
    )
    draw_2B = [
      randomness.token_uniform(keys_B, jnp.full(len(keys_B), n)) for n in (0, 1)
    ]
    prefix_B = cut_lengths(self.beta, traj.length_B, *draw_2B)
    kept_BT = jnp.arange(traj.response_BT.shape[1])[None] < prefix_B[:, None]
    return traj.replace(
      response_BT=jnp.where(kept_BT, traj.response_BT, 0),
      kind_BT=jnp.where(kept_BT, traj.kind_BT, PAD),
      mask_BT=zero_masked(traj.mask_BT, kept_BT),
      logp_behaviour_BT=zero_masked(traj.logp_behaviour_BT, kept_BT),
      length_B=prefix_B,
      finished_B=jnp.zeros_like(traj.finished_B),
      extras={**traj.extras, 'prefix_B': prefix_B},
    ), kept_BT

  def _cut_forced(self, traj: Trajectories, key: Array) -> Trajectories:
    """Rows that begin with tokens of the guide, which are not trained."""
    traj, kept_BT = self._cut(traj, key)
    return traj.replace(
      kind_BT=jnp.where(kept_BT, FORCED, PAD),
      mask_BT=jnp.zeros_like(traj.mask_BT),
      logp_behaviour_BT=jnp.zeros_like(traj.logp_behaviour_BT),
      extras=_by_guide(traj, 0.0),
    )

  def _cut_own(self, traj: Trajectories, key: Array) -> Trajectories:
    """Rows that begin with tokens of the policy."""
    traj, _ = self._cut(traj, key)
    return traj.replace(extras=_by_guide(traj, 1.0))

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows whose log-probs are those of the policy, no further rounds)."""
    del done
    return sampler.run(_as_policy, traj, sampler.logp(traj)), []


def _by_guide(traj: Trajectories, value: float) -> dict[str, Array]:
  """The extras of rows that the guide finishes, 1, or that it begins."""
  flag_B = jnp.full_like(traj.weight_B, value)
  return {**traj.extras, 'finished_by_guide_B': flag_B}


def _as_policy(traj: Trajectories, logp_BT: Array) -> Trajectories:
  """Tokens of the guide have the log-probs of the policy: none is a ratio."""
  place_1T = jnp.arange(logp_BT.shape[1])[None]
  guided_BT = (traj.extras['finished_by_guide_B'][:, None] > 0) & (
    place_1T >= traj.extras['prefix_B'][:, None]
  )
  known_BT = jnp.where(guided_BT, logp_BT, traj.logp_behaviour_BT)
  return traj.replace(logp_behaviour_BT=zero_masked(known_BT, traj.mask_BT))
