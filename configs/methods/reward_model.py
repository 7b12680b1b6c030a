"""Reward model: a value head learns which response is better.

Paper: Ouyang et al., "Training language models to follow instructions with
  human feedback", 2022; the loss is that of Bradley and Terry.
Change: against DPO, the score of a response is read from a value head after
  its last token, not from log-probs; no reference.
Defaults: centring 0.01 (TRL, where it is off by default); learning rate 1e-5
  for whole models (EasyLM), one pass over the data.
Pieces: PairLoss(score=FinalValue(), link=Sigmoid(label_smoothing=0.0,
  gamma=0.0), coef=1.0); CenteredScores(score=FinalValue(), coef=0.01);
  TokenMean(); RecordedPairs()
Headline: unverified.
Evidence: verified in code (TRL reward_trainer.py, by a digest of the code).
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=reward_model
reward_model@margin and reward_model@flipped are for data with scores, as means
of several reward models (Wang et al., "Secrets of RLHF Part II", 2024, by a
secondary source): their difference, of either sign, is the margin of the label;
or a pair whose scores contradict its label is turned round.
reward_model@rankings is for several responses with scores: all pairs of a
prompt, which count as many as it has (InstructGPT; Okapi, whose released model
reads one pair of four ranked responses).
reward_model@meta, @soft and @contrast are of Wang et al., too, reconstructed: a
gradient at parameters that separate samples of a policy (MetaRM; rows with
`samples`), labels that are as sure as sigmoid of that difference of means, and
features of a response that are alike under noise.
reward_model@strength is MAPL's, reconstructed: pairs with a larger gap of the
rewards of the data have a larger difference of scores.
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dpo'  # what influence compares it with

VARIANTS = {
  'margin': ('pairs=GivenMargin()', 'losses.CenteredScores=null'),
  'flipped': ('pairs=AllPairs()', 'losses.CenteredScores=null'),
  'rankings': ('pairs=AllPairs()', 'losses.CenteredScores=null'),
  'meta': ('losses+=SampleSpread(score=FinalValue())',),
  'soft': (
    'pairs=GivenMargin()',
    'losses.PairLoss.link=SoftTarget()',
    'losses.CenteredScores=null',
  ),
  'contrast': ('losses+=FeatureContrast()',),
  'strength': ('losses+=StrengthOrder(score=FinalValue())',),
}


def get_method() -> Method:
  """Pairs from data; needs model.value_head."""
  score = pref.FinalValue()
  return Method(
    losses=(
      pref.PairLoss(score=score, link=pref.Sigmoid()),
      pref.CenteredScores(score=score),
    ),
    aggregation=TokenMean(),
    pairs=pref.RecordedPairs(),
  )
