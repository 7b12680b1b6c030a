"""DNO: log-ratio gaps fitted to differences of win rates.

Paper: Rosset et al., "Direct Nash Optimization: Teaching Language Models to
  Self-Improve with General Preferences", 2024.
Change: against iterative DPO, all pairs of samples have soft labels by their
  win rates against the policy.
Defaults: eta 0.1, rounds of 20 iterations (ours). DNO-Prct, its practical form,
  is iterative DPO with AllPairs(min_gap=...).
Pieces: WinRate(with_self=0.0, against='group', center=0.0);
  PairLoss(score=LogRatio(beta=0.1, length='sum'), link=SoftTarget(), coef=1.0);
  TokenMean(); AllPairs(min_gap=0.0, margin_scale=1.0); CopyEvery(iterations=20)
Headline: unverified.
Evidence: read in paper (digest; Algorithm 1).
Paper and code: samples with equal win rates make no edge; in Algorithm 1 they
  have q = 1/2, which pulls their log-ratios together.
Command: python -m experiments.train --config=configs/worlds/bandit.py
  --method=dno
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces import shaping
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import CopyEvery


def get_method() -> Method:
  """Win rates inside the group stand for those against the policy."""
  return Method(
    shaping=(shaping.WinRate(),),
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.SoftTarget()),),
    aggregation=TokenMean(),
    pairs=pref.AllPairs(margin_scale=1.0),
    reference=CopyEvery(iterations=20),
  )
