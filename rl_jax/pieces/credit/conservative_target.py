"""B-Coder: one-step targets by the favourite token of the initial policy."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens, zero_masked
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, ValueTarget
from rl_jax.pieces.statistics.greedy_gap import GreedyGap

_FAVOURITE = GreedyGap('reference')


@piece
class ConservativeTarget(ValueTarget):
  """ret_t = r_t + gamma min(Q(s', a), cap), a = argmax of the reference at s'.

    Q(s, a) = V(s) + alpha (log pi(a|s) - max_v log pi(v|s)),  V as DuelingQ

  s' is what the policy faces at its next trained token; after the last one Q
  is 0. All values are those of the weights that sampled. With the policy itself
  as reference it is Q-learning's r + gamma max_v Q(s', v), which trusts values
  of untried tokens. A reward [B] is placed on the last trained token.
  Source: conservative Bellman operator of "B-Coder: Value-Based Deep
  Reinforcement Learning for Program Synthesis", section 4, from the text; the
  place of the cap is reconstructed.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per token
  cap: float = ranged(1.0)  # the largest return, in units of the reward
  # Reward per nat. None: that of DuelingQ.
  alpha: float | None = ranged(None, 0.0, open_low=True)
  # Outputs of the value head whose sum is V. None: those of DuelingQ.
  num_summed: int | None = ranged(None, 1, static=True)
  needs = ('value_heads', _FAVOURITE)

  def resolve(self, method: Any) -> 'ConservativeTarget':
    """Takes alpha and V of the method's DuelingQ.

    Raises ValueError if there is none, or another alpha, or if transforms of
    the logits take out tokens that the reference may favour.
    """
    if method.logits:
      raise ValueError(
        'ConservativeTarget reads logits of all tokens: method.logits = '
        f'{method.logits} must be empty'
      )
    for loss in method.losses:
      dueling = loss.offers.get('dueling_q')
      if dueling is not None and self.alpha in (None, dueling['alpha']):
        return self.replace(**dueling)
    raise ValueError(
      f'ConservativeTarget.alpha = {self.alpha} needs a DuelingQ of the same '
      'alpha in method.losses'
    )

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> targets [B, T]."""
    assert self.alpha is not None, 'resolve has not been called'
    reward, traj = ctx.credit, ctx.traj
    reward_BT = on_tokens(reward, traj.mask_BT)
    gap_BT = row_inputs.read(traj, _FAVOURITE.name, 'filled by score')
    value_BT = traj.values_BTH[..., : self.num_summed].sum(axis=-1)
    chosen_BT = (value_BT + self.alpha * gap_BT).clip(max=self.cap)
    next_BT = next_kept(chosen_BT, traj.mask_BT)
    return CreditOut(
      zero_masked(reward_BT + self.gamma * next_BT, traj.mask_BT)
    )
