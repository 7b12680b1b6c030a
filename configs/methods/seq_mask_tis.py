"""Sequence mask: rows on which sampler and trainer disagree drop out.

Paper: no paper: the mode seq-mask-tis of NeMo-RL and OpenRLHF, after
  Liu et al., "When Speed Kills Stability", 2025.
Change: against IcePop, the geometric mean of a row's pi_old / pi_sampler
  decides for the whole row, and kept rows use raw token weights.
Defaults: interval [0.5, 5] (OpenRLHF). Geometric means lie near 1: narrower
  limits such as [0.999, 1.002] are used too (unverified).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); SequenceMask(low=0.5, high=5.0); TokenMean()
Headline: unverified.
Evidence: verified in code (NeMo-RL, OpenRLHF: peers).
Paper and code: no paper found for the exact rule.
Command: python -m experiments.train --config=configs/worlds/mismatch.py
  --method=seq_mask_tis --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'icepop'  # what influence compares it with


def get_method() -> Method:
  """GRPO with the row mask."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    weights=(weights.SequenceMask(low=0.5, high=5.0),),
    aggregation=TokenMean(),
  )
