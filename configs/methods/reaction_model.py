"""A reward model of reactions: the probability that users react to a response.

Paper: "Reinforcement Learning from User Feedback" (RLUF), 2025.
Change: against a reward model of comparisons, single responses have a label, 1
  for a reaction; the value after the last token is the logit of its
  probability. Needs model.value_head=True and rows with labels.
Defaults: reactions count as often as they occur (ours; unverified there).
Pieces: ReactionLoss(positive=1.0); TokenMean()
Headline: unverified.
Evidence: reconstructed (abstract and notes of others).
Command: python -m experiments.train --config=configs/worlds/loved_motifs.py
  --method=reaction_model --workdir=runs/love
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reward_model'  # what influence compares it with


def get_method() -> Method:
  """Labels of single responses; needs model.value_head."""
  return Method(losses=(losses.ReactionLoss(),), aggregation=TokenMean())
