"""GDPO: every reward component is normalised by itself, then the sum whitened.

Paper: Liu et al., "GDPO: Group reward-Decoupled Normalization Policy
  Optimization for Multi-reward RL Optimization", 2026.
Change: against GRPO, components are centred and divided by their standard
  deviations in the group before they are added, and the sum is whitened over
  the tokens of the rollout, so that its size does not grow with the number of
  components. Without the last step it is MO-GRPO.
Defaults: equal weights, N - 1 in both deviations, whitening eps 1e-8 (verl);
  clip 0.2, mean of rows and no KL are ours.
Pieces: ComponentScale(components=('outcome', 'format'), weights=(1.0, 1.0),
  eps=1e-06, over='group'); Whiten(eps=1e-08, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code (verl core_algos.py, a peer).
Command: python -m experiments.train --config=configs/countdown.py
  --method=gdpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """Scaled by component, added, whitened over tokens."""
  return Method(
    credit=(credit.ComponentScale(), credit.Whiten()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
