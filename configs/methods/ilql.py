"""ILQL: likelihood of recorded responses, token by token by their advantage.

Paper: Hong et al., "Zero-Shot Goal-Directed Dialogue via RL on Imagined
  Conversations", 2023; Snell et al., "Offline RL for Natural Language
  Generation with Implicit Language Q Learning", 2022.
Change: against SFT, tokens weigh exp(beta (Q - V)); V is an upper expectile of
  Q, so that good parts of several responses join to a better one. Needs
  model.value_head=True and model.num_values=3.
Defaults: tau 0.7, gamma 0.99 (ILQL's code for Wordle); beta 4 is ours.
Pieces: ImplicitAdvantage(); NegativeLogLikelihood(); ImplicitQ(tau=0.7);
  ExpAdvantage(beta=4.0, most=20.0); TokenMean(); ImplicitTargets(gamma=0.99)
Headline: better than imitation in dialogues (abstract).
Evidence: losses verified in code of ILQL (by digest); none was found of the
  first paper.
Paper and code: in ILQL Q has an output for every token, a term of CQL (1e-4)
  and moving averages as targets; it acts by logits + 16 (Q - V), weights are 1.
Command: python -m experiments.train --config=configs/preferences.py
  --method=ilql
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'sft'  # what influence compares it with


def get_method() -> Method:
  """Two Q heads, one V head, weighted cloning."""
  return Method(
    credit=(credit.ImplicitAdvantage(),),
    value_target=credit.ImplicitTargets(),
    losses=(losses.NegativeLogLikelihood(), losses.ImplicitQ()),
    weights=(weights.ExpAdvantage(),),
    aggregation=TokenMean(),
  )
