"""SPO: the reward is the win rate against other samples.

Paper: Swamy et al., "A Minimaximalist Approach to Reinforcement Learning from
  Human Feedback", 2024.
Change: against REINFORCE, no scale of rewards is needed: only who wins inside
  the group counts.
Defaults: none; with any policy gradient (here without a clip).
Pieces: WinRate(with_self=0.0, against='group', center=0.0); GroupCenter();
  Reinforce(); SeqMeanTokenSum()
Headline: unverified.
Evidence: reconstructed (the form for groups of samples).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=spo
spo@queue compares with the samples of earlier rollouts to the same prompt.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenSum

VARIANTS = {'queue': ('shaping.WinRate=null', 'shaping+=QueueWinRate()')}


def get_method() -> Method:
  """Win rates minus their mean of one half."""
  return Method(
    shaping=(shaping.WinRate(),),
    credit=(credit.GroupCenter(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
