"""MCTS-DPO: DPO on the steps that a tree search of the policy prefers.

Paper: Xie et al., "Monte Carlo Tree Search Boosts Reasoning via Iterative
  Preference Learning", 2024.
Change: against online DPO, pairs are siblings of a search tree, the best
  against the worst by their Q; the loss sees the tokens of the step only, and
  labels are as sure as visits say.
Defaults: beta 0.1, PUCT with w 1 and lengths to the power 1.25, gamma 1, depth
  3, four times as many iterations from the prompt, 8 pairs a tree at most
  (release). 4 iterations and 8 nodes with children are ours (release: 64
  iterations, 2 children; here rollout.group_size children). Steps are spans of
  tokens: --set=method.rollout.step_tokens=6. mcts_dpo@hard believes all labels
  (the release's switch); mcts_dpo@leaves draws the tree of SPO and compares the
  mean rewards of the leaves below siblings; mcts_dpo@likely adds the likelihood
  of the best of them, and mcts_dpo@searched that of the steps which the search
  finds best (iRFT).
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=ConfidentSigmoid(), coef=1.0); TokenMean(); SearchPairs();
  TreeSearch(expansions=7, step_tokens=30, iterations=4, moves=8, depth=3,
  exploration=1.0, length_power=1.25, discount=1.0)
Headline: GSM8K 81.8 (+5.9), MATH 34.7 (+5.8) over the SFT model of Mistral-7B.
Evidence: verified in code (YuxiXie/MCTS-DPO mcts.py: selection and backup).
Paper and code: a step's value is the reward of a completion after it, where
  the release asks the policy whether it is right, with the solution as a hint.
  The reference is frozen; the release starts a new one every 64 steps.
Measured (when values were backed up once for each opened node, where the
  release and now the search do once an iteration): start of
  configs/worlds/chain.py, greedy on 512 problems 0.529; 20 iterations of 8
  prompts, 32 rows each, rate 3e-4, seeds 0 to 2: search 0.533, 0.512, 0.543,
  leaves (branches (4, 4), steps of 6 tokens) 0.529, 0.547, 0.533 at as many
  tokens (difference -0.007 [-0.07, 0.05]): not separated, and no gain in so
  short a run.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=mcts_dpo --set=method.rollout.step_tokens=6
  --set=rollout.group_size=4
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import TreeSearch

_LINK = 'losses.PairLoss.link=Sigmoid()'
_LEAVES = (
  *('losses.PairLoss=null', 'pairs=null'),
  'losses+=TreeSiblings(loss=PairLoss(score=LogRatio(), link=Sigmoid()))',
  'rollout=SegmentTree(threshold=1.0)',
)
VARIANTS = {
  'hard': (_LINK,),
  'leaves': _LEAVES,
  'searched': ('losses+=ChosenLikelihood(coef=0.1)',),
  'likely': (
    *_LEAVES,
    'losses+=TreeSiblings(loss=ChosenLikelihood(coef=0.1))',
  ),
}


def get_method() -> Method:
  """The pairs are of one search from each prompt."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogRatio(), link=pref.ConfidentSigmoid()),
    ),
    aggregation=TokenMean(),
    pairs=pref.SearchPairs(),
    rollout=TreeSearch(),
  )
