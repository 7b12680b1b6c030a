"""GEPO: equivalent winners against losers, tied by their variance.

Paper: "Group Equivalent Preference Optimization", in OORL (reinforcement
  learning for code translation), 2025.
Change: against DPO, the mean log-ratio of a group of winners against that of
  losers; winners that mean the same get the same log-ratio.
Defaults: variance 1 (paper); beta 0.1 (ours, unverified there).
Pieces: GroupContrast(beta=0.1, variance=1.0, coef=1.0, data_only=False);
  TokenMean(); AllPairs(min_gap=0.0, margin_scale=0.0)
Headline: unverified.
Evidence: read in paper (digest; equations inferred from the text).
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=gepo
gepo@oorl_groups is OORL: REINFORCE++ on samples and, with coefficient 0.01
(paper), this loss on recorded groups of equivalent responses beside them
(rollout.recorded_prompts), whose rewards take part in whitening. gepo@oorl has
no recorded groups: the loss is on the same samples.
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

_OORL = (
  'losses.GroupContrast.coef=0.01',
  'credit+=DiscountedReturn(gamma=1.0)',
  'credit+=Whiten()',
  'losses+=PPOClip()',
)
VARIANTS = {
  'oorl': _OORL,
  'oorl_groups': (
    *_OORL,
    'losses.GroupContrast.data_only=True',
    'weights+=SampledRows()',
  ),
}


def get_method() -> Method:
  """One winner and one loser are DPO."""
  return Method(
    losses=(pref.GroupContrast(),),
    aggregation=TokenMean(),
    pairs=pref.AllPairs(),
  )
