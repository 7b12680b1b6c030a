"""SePPO: SPIN whose samples are raised until the record is learned.

Paper: Zhang et al., "SePPO: Semi-Policy Preference Optimization for Diffusion
  Alignment", 2024.
Change: against SPIN, while the record is less likely than under the reference
  the sample counts as a winner, too; the reference, which samples, is the
  policy at the start of a past round, drawn again for each round.
Defaults: beta 0.1; rounds of 50 iterations and four policies held, of all past
  rounds alike, are ours. seppo@initial and seppo@latest have the first policy
  and that of the last round, which the paper compares.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'), link=AnchorSign(),
  coef=1.0); TokenMean(); RecordWins(); BesideRecord(coef=1.0);
  RandomPast(iterations=50, most=4, seed=0)
Headline: without the sign PickScore 20.88, with it 21.57 (ablation).
Evidence: reconstructed: reviews give the structure for diffusion models, the
  form for language models is ours.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=seppo --set=rollout.group_size=2
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import RandomPast
from rl_jax.rollouts.wrappers import BesideRecord

BASELINE = 'spin'  # what influence compares it with
VARIANTS = {
  'initial': ('reference=Frozen()',),
  'latest': ('reference=CopyEvery(iterations=50)',),
}


def get_method() -> Method:
  """The sign is that of the record's log-ratio."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.AnchorSign()),),
    aggregation=TokenMean(),
    pairs=pref.RecordWins(),
    rollout=BesideRecord(),
    reference=RandomPast(iterations=50),
  )
