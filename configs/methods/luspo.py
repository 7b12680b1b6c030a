"""LUSPO: GSPO without its division by the length.

Paper: Liu et al., "Length-Unbiased Sequence Policy Optimization", 2026.
Change: against GSPO, the loss of a row is multiplied by its length, so that
  tokens of long responses are not scaled down.
Defaults: clip 3e-4/4e-4 as GSPO; those of the paper are unverified.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); GSPO(clip_low=0.0003,
  clip_high=0.0004); SeqMeanTokenSum()
Headline: unverified.
Evidence: verified in code (trl, a peer).
Paper and code: none seen.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=luspo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'gspo'  # what influence compares it with


def get_method() -> Method:
  """GSPO's loss, summed over tokens."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.GSPO(),),
    aggregation=SeqMeanTokenSum(),
  )
