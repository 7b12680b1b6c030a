"""f-SFT: supervised training as reward learning under a divergence.

Paper: "Implicit Reward as the Bridge: A Unified View of SFT and DPO
  Connections", 2025.
Change: against SFT, the gradient of a response falls as it becomes likelier
  than under the reference (Pearson chi-squared); the linear form is SFT.
Defaults: beta 0.1, of sums over responses (ours; unverified there). Its other
  finding, a small learning rate of SFT before DPO (2e-5 down to 2e-6), is a
  setting of the optimizer.
Pieces: ImplicitRewardFit(beta=0.1, divergence='chi2'); TokenMean()
Headline: unverified.
Evidence: reconstructed (abstract and a review; the duals are re-derived).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --set=task.form=right --set=rollout.group_size=1 --method=f_sft
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'sft'  # what influence compares it with


def get_method() -> Method:
  """Pearson chi-squared; divergence=hellinger or js are the others."""
  return Method(
    losses=(pref.ImplicitRewardFit(),),
    aggregation=TokenMean(),
  )
