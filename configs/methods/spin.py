"""SPIN: recorded responses against samples of the policy of before.

Paper: Chen et al., "Self-Play Fine-Tuning Converts Weak Language Models to
  Strong Language Models", 2024.
Change: against DPO, data hold right responses only: the rejected one of a pair
  is a sample of the reference, which is the policy at the start of each round.
Defaults: beta 0.1; rounds of 50 iterations (ours: theirs are epochs over the
  data).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  RecordWins(); BesideRecord(coef=1.0); CopyEvery(iterations=50)
Headline: unverified.
Evidence: verified in code (uclaml/SPIN spin/alignment/trainer.py, spin_loss);
  its rounds are files of samples, which a pipeline of commands makes.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=spin --set=rollout.group_size=2
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import CopyEvery
from rl_jax.rollouts.wrappers import BesideRecord

BASELINE = 'dpo'  # what influence compares it with


def get_method() -> Method:
  """DPO on record against sample."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),),
    aggregation=TokenMean(),
    pairs=pref.RecordWins(),
    rollout=BesideRecord(),
    reference=CopyEvery(iterations=50),
  )
