"""RSO: pairs of samples accepted as if from the optimal policy.

Paper: Liu et al., "Statistical Rejection Sampling Improves Preference
  Optimization", 2023.
Change: against online DPO, pairs come from samples of the start, the frozen
  reference, that approximate the reward-tilted policy pi_ref exp(r / beta).
Defaults: beta of the sampling 0.5, 2 of a group kept (paper: 8 of 64), gamma
  0.05 in the loss. Samples of the policy itself are drawn and discarded here.
  rso@online draws candidates from the policy as it moves. The pipeline rso
  makes the pairs before the training, as the paper does.
Pieces: PairLoss(score=LogRatio(beta=0.05, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  Rejection(beta=0.5, keep=2, seed=0); Against(coef=1.0, trained='opponent')
Headline: unverified.
Evidence: read in paper (digest; Algorithm of appendix A.1).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=rso
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import Against

VARIANTS = {'online': ('rollout=null',)}


def get_method() -> Method:
  """The logistic loss; Hinge() is the other of the paper."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(beta=0.05), link=pref.Sigmoid()),
    ),
    aggregation=TokenMean(),
    pairs=pref.Rejection(),
    rollout=Against(trained='opponent'),
  )
