"""Turn PPO: PPO with rewards at the ends of turns and turns as steps of GAE.

Paper: Wang et al., "A Practitioner's Guide to Multi-turn Agentic Reinforcement
  Learning", 2025, for rewards by turn; GAE over turns is this code's.
Change: against PPO, gamma and lambda act between turns, and the value at the
  first token of a turn is its baseline. Needs model.value_head=True.
Defaults: gamma 1, lambda 0.95, clips 0.2 (verl). After episodes that were cut
  the value is 0; turn_ppo@bootstrap has their last one there.
Pieces: TurnRewards(); TurnGAE(gamma=1.0, lam=0.95, bootstrap=False);
  Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  ValueClip(coef=0.5, clip=0.2); TokenMean(); TurnLambdaReturn(gamma=1.0,
  lam=0.95, bootstrap=False)
Headline: none.
Evidence: reconstructed.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=turn_ppo --set=model.value_head=True
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with
VARIANTS = {
  'bootstrap': ('credit.TurnGAE.bootstrap=True', 'value_target.bootstrap=True')
}


def get_method() -> Method:
  """Rewards and values of turns."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.TurnGAE(), credit.Whiten()),
    value_target=credit.TurnLambdaReturn(),
    losses=(losses.PPOClip(), losses.ValueClip()),
    aggregation=TokenMean(),
  )
