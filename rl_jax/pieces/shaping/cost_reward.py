"""Router-R1: right answers earn more the cheaper they were."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import is_rounding
from rl_jax.pieces.ops.quantiles import row_quantiles
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, static


@piece
class CostReward(Shaping):
  """(1 - alpha) R + alpha c where R > 0, else R.

    z = sqrt(cost),  c = 1 - clip((z - lo) / (hi - lo), 0, 1)

  lo and hi are the 5th and 95th percentile of the last `window` costs of valid
  rows, those of this rollout included; c = 1/2 where they are equal, or differ
  by no more than float32 rounding. So a wrong answer earns nothing by being
  cheap.
  cost: that of the row, as the component `cost` of `tasks.WithTools`.
  malformed: a component that counts what is of a wrong form, as actions that no
  partner knows; a row with some, or one that a limit has cut, has reward -1,
  whatever else it did (the format gate). None: there is no gate.
  State: the window, NaN where it is not yet filled; rows of a rollout see the
  same percentiles, so that their order changes nothing.
  Source: "Router-R1: Teaching LLMs Multi-Round Routing and Aggregation via
  Reinforcement Learning"; ulab-uiuc/Router-R1 qa_em.py, whose window is not
  saved and sees the evaluations.
  """

  alpha: float = ranged(0.6, 0.0, 1.0)
  window: int = ranged(1000, 1, static=True)
  malformed: str | None = static(default=None)
  reads = {'cost_B': 'what the row has cost, >= 0'}

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No cost has been seen."""
    del num_prompts
    return {'costs': jnp.full(self.window, jnp.nan)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    cost_B = row_inputs.read(traj, 'cost_B', self.reads['cost_B'])
    root_B = jnp.sqrt(jnp.maximum(cost_B, 0.0))
    counts_B = (traj.valid_B * row_inputs.sampled_B(traj)) > 0
    seen = jnp.concatenate(
      [ctx.state['costs'], jnp.where(counts_B, root_B, jnp.nan)]
    )
    # Rows that count move to the end, in their order.
    order = jnp.argsort(~jnp.isnan(seen), stable=True)
    costs = seen[order][-self.window :]
    low, high = row_quantiles(costs[None], jnp.asarray([0.05, 0.95]))[0]
    # Also where nothing was seen; the release has the absolute limit.
    flat = is_rounding(high - low, high) | (high - low < 1e-8)
    scaled_B = (root_B - low) / jnp.where(flat, 1.0, high - low)
    cheap_B = jnp.where(flat, 0.5, 1.0 - jnp.clip(scaled_B, 0.0, 1.0))
    mixed_B = (1.0 - self.alpha) * reward_B + self.alpha * cheap_B
    value_B = jnp.where(reward_B > 0, mixed_B, reward_B)
    if self.malformed is not None:
      key = f'{self.malformed}_B'
      wrong_B = row_inputs.read(traj, key, 'the gate of CostReward') > 0
      value_B = jnp.where(wrong_B | ~traj.finished_B, -1.0, value_B)
    return CreditOut(value_B, {'costs': costs})
