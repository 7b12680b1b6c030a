"""CoS(M+O)S: ORPO on the steps of a tree of samples.

Paper: "CoS(M+O)S: Curiosity and RL-Enhanced MCTS for Exploring Story Space via
  LLMs", 2025.
Change: against MCTS-DPO, the loss is that of ORPO: odds without a reference,
  and the likelihood of the best step.
Defaults: lambda 0.1 (ORPO; unverified there). Its score of a step, curiosity
  less incoherence, is the reward of a task, not part of the method here.
Pieces: TreeSiblings(loss=PairLoss(score=LogOdds(),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=0.1));
  TreeSiblings(loss=ChosenLikelihood(coef=1.0, average='token')); TokenMean();
  SegmentTree(branches=(2, 2), segment_tokens=30, threshold=1.0)
Headline: unverified.
Evidence: reconstructed (abstract).
Command: python -m experiments.train --config=configs/chain.py --method=cosmos
  --set=method.rollout.segment_tokens=12
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers.segment_tree import SegmentTree


def get_method() -> Method:
  """Both terms on the steps alone."""
  odds = pref.PairLoss(score=pref.LogOdds(), link=pref.Sigmoid(), coef=0.1)
  return Method(
    losses=(
      pref.TreeSiblings(loss=odds),
      pref.TreeSiblings(loss=pref.ChosenLikelihood()),
    ),
    aggregation=TokenMean(),
    rollout=SegmentTree(threshold=1.0),
  )
