"""EMPG: larger advantages on steps of low entropy, and a bonus before them.

Paper: "Harnessing Uncertainty: Entropy-Modulated Policy Gradients for
  Long-Horizon LLM Agents", 2025.
Change: against GRPO, the advantage of a step is scaled by exp(-k H) over its
  mean, zeta exp(-k' H of the next step) is added, and the mean is taken off.
Defaults: k 1, k' 1, zeta 0.1 are ours: the paper's values are unverified. A
  step is a turn; --set=method.credit.EntropyModulation.segments=extras reads
  segment_start_BT instead.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); EntropyModulation(k=1.0,
  k_future=1.0, zeta=0.1, eps=1e-08, segments='turns'); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean()
Headline: ALFWorld 1.5B: 8.1 points over GRPO.
Evidence: reconstructed from a digest; no code.
Paper and code: not seen.
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=empg
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO advantages modulated by step entropy."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.EntropyModulation(),
    ),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
