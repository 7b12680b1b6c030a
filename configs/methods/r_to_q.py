"""From r to Q*: a DPO policy's log-ratio is the credit of a token.

Paper: Rafailov et al., "From r to Q*: Your Language Model is Secretly a
  Q-Function", 2024.
Change: against PPO, the advantage of a token is beta times the log-ratio of a
  DPO policy to the reference, its soft advantage in the token process; neither
  critic nor outcome is read. Needs the policy:
  method.shaping.ImplicitReward.path.
Defaults: beta 0.1 (unverified), clip 0.2. Beam search by these values, its
  other use, is search by the likelihood of the DPO policy: `evaluate` with
  --set=evaluation.beams=5 (paper: 1 to 5 beams, more are worse).
Pieces: Affine(scale=0.0, offset=0.0); ImplicitReward(path='runs/dpo',
  coef=0.1); PPOClip(clip_low=0.2, clip_high=0.2); TokenMean()
Headline: unverified.
Evidence: reconstructed (the identities are re-derived; the policy-gradient use
  is ours, the paper reads them off).
Command: python -m experiments.train --config=configs/worlds/proxy.py
  --method=r_to_q --set=method.shaping.ImplicitReward.path=runs/proxy_dpo
"""

from rl_jax.method import Method
from rl_jax.pieces import losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Token rewards as they are: no sum over later tokens."""
  return Method(
    shaping=(
      shaping.Affine(scale=0.0),
      shaping.ImplicitReward(coef=0.1, clip=None),
    ),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
