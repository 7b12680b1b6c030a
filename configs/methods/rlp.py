"""RLP: thoughts earn what they add to the likelihood of the text that follows.

Paper: "RLP: Reinforcement as a Pretraining Objective", 2025.
Change: against GRPO, no verifier: a thought is rewarded by the log-likelihood
  of the known text after it, less that of the text without a thought under a
  moving average of the policy; the baseline is the mean of the other samples,
  without the standard deviation. Only thoughts are trained. Needs a task that
  marks thoughts (think_mask_BT), as tasks.TextSpans does for any text.
Defaults: average 0.999, KL 0 (paper); groups of 16, thoughts of 2048 tokens,
  temperature 0.7, learning rate 1e-6 there; clip 0.2 (ours, unverified there).
Pieces: InformationGain(coef=1.0); LeaveOneOut(); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean(); ThoughtGain(); Average(decay=0.999,
  iterations=1)
Headline: Qwen3-1.7B-Base 30.32 -> 36.03 on average (continued pretraining
  30.85).
Evidence: read in paper (NVlabs/RLP, README and paper; no code).
Paper and code: the average moves once an iteration here, with every optimizer
  step there; there a position of the text is drawn, here its answer is read.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=rlp --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.pieces.policies import Average
from rl_jax.rollouts.wrappers.thought_gain import ThoughtGain

VARIANTS = {'frozen': ('reference.decay=1.0',)}


def get_method() -> Method:
  """Leave-one-out advantages of the gain."""
  return Method(
    shaping=(shaping.InformationGain(),),
    credit=(credit.LeaveOneOut(),),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    reference=Average(decay=0.999),
    rollout=ThoughtGain(),
  )
