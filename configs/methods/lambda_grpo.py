"""lambda-GRPO: a learned preference for the length of responses.

Paper: Wang et al., "lambda-GRPO: Unifying the GRPO Frameworks with Learnable
  Token Preferences", 2025.
Change: against DAPO without its sampling, the loss of a row is weighted by
  n softmax(h^lambda) of its standardised length, h = 1 + z / 9, and lambda is
  learned with the policy.
Defaults: lambda starts at 0, which is DAPO's token mean (ours; so are 1/9 and
  the step of lambda); clip 0.2, eps 1e-6.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  LengthPreference(clip_low=0.2, clip_high=0.2, start=0.0,
  spread=0.1111111111111111, rate=1000.0, eps=1e-06, floor=0.001); TokenMean()
Headline: +1.9, +1.0 and +1.7 points over GRPO on Qwen2.5 1.5B, 3B and 7B,
  average of eight math benchmarks (unverified).
Evidence: reconstructed from the abstract and public summaries.
Paper and code: the released code was not read.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=lambda_grpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dapo'  # what influence compares it with


def get_method() -> Method:
  """Group advantages, and a loss that learns how length weighs."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.LengthPreference(),),
    aggregation=TokenMean(),
  )
