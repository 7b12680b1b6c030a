"""THR: advantages follow what a token does to the right responses.

Paper: "Token Hidden Reward: Steering Exploration-Exploitation in Group Relative
  Deep Reinforcement Learning", 2025.
Change: against GRPO, only tokens whose influence on the log-probs of the
  group's right responses is large are trained, those that help by 1 + p, those
  that harm by 1 - p.
Defaults: p 0.1 and beta 1 are ours: the paper's values are unverified. No KL.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1);
  TokenHiddenReward(direction=0.1, beta=1.0, correct_above=0.5);
  PPOClip(clip_low=0.2, clip_high=0.2); SeqMeanTokenMean()
Headline: p > 0 gains up to about 4 points of pass@1, p < 0 gains pass@K (7B).
Evidence: reconstructed from public reviews; the influence from an
  implementation note of NTHR.
Paper and code: official code not read. Memory: probabilities of all tokens of
  the group at every position, [B, T, G T].
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=thr
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO with token hidden rewards."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.TokenHiddenReward(direction=0.1, beta=1.0),
    ),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
