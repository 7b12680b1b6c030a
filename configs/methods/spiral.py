"""SPIRAL: PPO on the return minus the running mean of the role.

Paper: Liu et al., "SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning
  via Multi-Agent Multi-Turn Reinforcement Learning", 2025.
Change: against REINFORCE, the baseline is a running mean of all past returns of
  the role (of the player who moves first, say), the loss is clipped, and sums
  over tokens are divided by a constant.
Defaults: decay 0.95, clip 0.2, length 4096, gamma 1 between turns (oat).
Pieces: RoleBaseline(decay=0.95, roles=2); PPOClip(clip_low=0.2, clip_high=0.2);
  SeqMeanTokenSumNorm(length=4096.0)
Headline: gains on math benchmarks after self-play of Kuhn poker (paper).
Evidence: verified in code (spiral-rl/spiral train_spiral.py, sail-sg/oat).
Paper and code: the means of each actor are its own there and are lost on a
  restart; here they are of all rows and in the checkpoint. There the mean is
  over turns, without rows of A = 0; here it is over all rows of games. The
  policy plays both sides of a game, unless method.rollout is an Opponent, which
  makes a copy play the other one.
Command: python -m experiments.train --config=configs/kuhn.py --method=spiral
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSumNorm

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """A running baseline for each role, and the clipped loss."""
  return Method(
    credit=(credit.RoleBaseline(),),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenSumNorm(length=4096.0),
  )
