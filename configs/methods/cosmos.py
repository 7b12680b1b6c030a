"""CoS(M+O)S: ORPO on the steps that a search for moderate surprise prefers.

Paper: "CoS(M+O)S: Curiosity and RL-Enhanced MCTS for Exploring Story Space via
  LLMs", 2025.
Change: against MCTS-DPO, the value of a step is how moderately it surprises
  less how incoherent it is, and the loss is that of ORPO: odds without a
  reference, and the likelihood of the best step.
Defaults: lambda 0.1 (ORPO; unverified there); the constants of the value and of
  the search are ours.
Pieces: PairLoss(score=LogOdds(), link=Sigmoid(label_smoothing=0.0, gamma=0.0),
  coef=0.1); ChosenLikelihood(coef=1.0, average='token'); TokenMean();
  SearchPairs(); TreeSearch(expansions=7, step_tokens=30, iterations=4, moves=8,
  depth=3, exploration=1.0, length_power=1.25, discount=1.0,
  value=StepCuriosity(target=0.3, width=0.5, incoherence=2.0))
Headline: unverified.
Evidence: reconstructed (abstract).
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=cosmos --set=method.rollout.step_tokens=6 --set=rollout.group_size=4
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers import StepCuriosity, TreeSearch


def get_method() -> Method:
  """Both terms see only the tokens of the steps."""
  return Method(
    losses=(
      pref.PairLoss(score=pref.LogOdds(), link=pref.Sigmoid(), coef=0.1),
      pref.ChosenLikelihood(),
    ),
    aggregation=TokenMean(),
    pairs=pref.SearchPairs(),
    rollout=TreeSearch(value=StepCuriosity()),
  )
