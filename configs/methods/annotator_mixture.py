"""Annotator mixture: reward models of groups of annotators, by EM.

Paper: Chakraborty et al., "MaxMin-RLHF: Alignment with Diverse Human
  Preferences", 2024; its first stage, whose heads `maxmin` reads.
Change: against the reward model, each annotator belongs to the group whose
  head explains his or her comparisons best, and trains that head only.
Defaults: two groups (paper: K = 2); 11 annotators, a new assignment every 60
  steps and centring 0.01 are ours.
Pieces: AnnotatorMixture(groups=2, annotators=11, period=60, center=0.01,
  seed=0); TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: reconstructed (formula from memory of the paper, whose models share no
  layers).
Command: python -m experiments.train --config=configs/worlds/annotators.py
  --method=annotator_mixture
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Pairs from data that say who chose; needs model.value_head."""
  return Method(
    losses=(pref.AnnotatorMixture(),),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
