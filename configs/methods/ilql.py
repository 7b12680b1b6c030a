"""ILQL: likelihood of recorded responses, played by what tokens are worth.

Paper: Hong et al., "Zero-Shot Goal-Directed Dialogue via RL on Imagined
  Conversations", 2023; Snell et al., "Offline RL for Natural Language
  Generation with Implicit Language Q Learning", 2022.
Change: against SFT, a value head learns V and two Q of every token of the
  vocabulary; V is an upper expectile of Q, so that good parts of several
  responses join to a better one. The policy is then played with the transform
  ActionValueTilt (evaluation.transforms). Variant awr: tokens weigh
  exp(beta (Q - V)) instead. Needs model.value_head=True and model.num_values=
  1 + 2 V, which the configuration of the command has.
Defaults: tau 0.7, gamma 0.99, target decay 0.995, CQL 1e-4, and in the
  transform beta 16, clip 0 (ILQL's code for Wordle); beta 4 of the variant is
  ours.
Pieces: NegativeLogLikelihood(); ImplicitQ(tau=0.7); ConservativeQ(coef=0.0001);
  TokenMean(); ImplicitTargets(gamma=0.99, decay=0.995)
Headline: better than imitation in dialogues (abstract).
Evidence: losses verified in code of ILQL (by digest); none was found of the
  first paper.
Paper and code: the code has separate networks for policy and values; here
  they share layers, and the Q of acting are not those of the target copy.
Command: python -m experiments.train
  --config=configs/worlds/recorded_haggling.py --method=ilql
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'sft'  # what influence compares it with
VARIANTS = {
  'awr': ('credit+=ImplicitAdvantage()', 'weights+=ExpAdvantage()'),
}


def get_method() -> Method:
  """Two Q of every token, one V, likelihood."""
  return Method(
    value_target=credit.ImplicitTargets(),
    losses=(
      losses.NegativeLogLikelihood(),
      losses.ImplicitQ(),
      regularizers.ConservativeQ(),
    ),
    aggregation=TokenMean(),
  )
