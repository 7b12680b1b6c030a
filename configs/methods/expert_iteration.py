"""Expert iteration: maximum likelihood of the right samples, prompt by prompt.

Paper: Anthony et al., "Thinking Fast and Slow with Deep Learning and Tree
  Search", 2017, for the name; Gulcehre et al., "Reinforced Self-Training
  (ReST) for Language Modeling", 2023; reconstructed.
Change: against REINFORCE, the advantage is 1 / p on right samples and 0 on
  others, p the share of right ones of the prompt.
Defaults: threshold 1; update.epochs says how long each round is learned.
Pieces: RewardAtLeast(threshold=1.0); Reinforce(); TokenMean()
Headline: none.
Evidence: reconstructed (a definition).
Command: python -m experiments.train --config=configs/worlds/keydoor.py
  --method=expert_iteration
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """The samples that reach the threshold, by likelihood."""
  return Method(
    credit=(credit.RewardAtLeast(),),
    losses=(losses.Reinforce(),),
    aggregation=TokenMean(),
  )
