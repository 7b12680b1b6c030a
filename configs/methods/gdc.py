"""GDC: maximum likelihood of the constrained reference.

Paper: Korbak et al., "RL with KL penalties is better viewed as Bayesian
  inference", 2022; Khalifa et al., "A Distributional Approach to Controlled
  Text Generation", 2021.
Change: against REINFORCE, the policy is fitted to a fixed target, the reference
  restricted to rewarded answers, by importance weights pi_ref / pi_old.
Defaults: weights not normalised (official code; normalize=True divides by the
  partition), sum over tokens, mean over rows.
Pieces: GDC(target='constraint', temperature=1.0, normalize=False);
  SeqMeanTokenSum()
Headline: unverified.
Evidence: verified in code (naver/gdc).
Paper and code: the paper is conceptual; the code refreshes its proposal only
  when it comes closer to the target, here it is the policy of each rollout.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=gdc
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Raw rewards as the constraint."""
  return Method(
    losses=(losses.GDC(target='constraint'),),
    aggregation=SeqMeanTokenSum(),
  )
