"""SFT: maximum likelihood of recorded responses.

Paper: none; teacher forcing.
Change: against REINFORCE, the responses are those of the data, all with
  advantage 1.
Defaults: none.
Pieces: NegativeLogLikelihood(); TokenMean()
Headline: unverified.
Evidence: reconstructed (a definition).
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --set=rollout.recorded_prompts=64 --set=rollout.group_size=1 --method=sft
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Mean over the tokens of the responses."""
  return Method(
    losses=(losses.NegativeLogLikelihood(),),
    aggregation=TokenMean(),
  )
