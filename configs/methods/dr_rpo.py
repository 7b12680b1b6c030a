"""DR-RPO: GRPO on the worst case of its returns, without the std.

Paper: "Policy Regularized Distributionally Robust MDPs with Linear Function
  Approximation" (DR-RPO), 2025.
Change: against GRPO, rewards of a group are cut from above where the worst case
  within total variation rho of its samples cuts them, and there is no division
  by the group std.
Defaults: rho 0.25 (ours; 0.1, as in other code of the authors, acts in groups
  of 10 or more); clip, KL and mean of GRPO.
Pieces: RobustReturn(rho=0.25); GroupCenter(); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed (no text or code of the paper was read; what it means
  for groups of responses is ours).
Paper and code: the paper has tabular and linear models, robust value iteration
  with a bonus for exploration, and a soft maximum around a reference policy; of
  it the robust return and the KL to a reference are left.
Command: python -m experiments.train --config=configs/worlds/boxes.py
  --method=dr_rpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """Cut from above, centred."""
  return Method(
    credit=(credit.RobustReturn(), credit.GroupCenter()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
