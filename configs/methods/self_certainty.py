"""Self-certainty: the policy's own confidence is the reward.

Paper: Zhao et al., "Learning to Reason without External Rewards", 2025; the
  score is that of Kang et al., "Scalable Best-of-N Selection via
  Self-Certainty".
Change: against GRPO, the reward is the mean over tokens of
  KL(uniform || policy); no verifier.
Defaults: those of GRPO; the paper's constants are unverified.
Pieces: SelfCertainty(coef=1.0); GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code for the score (backprop07/Self-Certainty);
  reconstructed as a reward.
Paper and code: not seen.
Command: python -m experiments.train --config=configs/worlds/unlabelled.py
  --method=self_certainty --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on self-certainty."""
  return Method(
    shaping=(shaping.SelfCertainty(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
