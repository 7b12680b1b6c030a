"""DRO: policy gradient with a quadratic pull to the old policy.

Paper: Richemond et al., "Offline Regularised Reinforcement Learning for Large
  Language Models Alignment", 2024.
Change: against GRPO, a squared log-ratio replaces the clip, so that a token
  stops where it has moved by A / coef nats.
Defaults: coefficient 1 (ours; that of verl unverified), centred rewards, token
  mean.
Pieces: GroupCenter(); DRO(coef=1.0); TokenMean()
Headline: unverified.
Evidence: verified in code (verl dro, a peer).
Paper and code: the paper is a sequence loss with a learned value; verl has this
  form per token with any advantage.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=dro --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Centred rewards with the quadratic pull."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.DRO(coef=1.0),),
    aggregation=TokenMean(),
  )
