"""CurES: prompts and their samples by the spread of outcomes.

Paper: Zeng et al., "CurES: From Gradient Analysis to Efficient Curriculum
  Learning for Reasoning LLMs", 2025.
Change: against GRPO without KL, prompts are drawn by exp(sqrt(p (1 - p)) / t),
  p by the samples of all batches, and half of the samples of a batch are given
  to its prompts in proportion to sqrt(p (1 - p)) of the first half.
Defaults: 4 samples, then 4 more a prompt on average, 12 at most
  (rollout.group_size=4); t 0.1 is ours.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean(); UncertaintyAllocation(confidence=0.95,
  coef=0.1, rounds=1, most=3, rule='spread', norms=False); SpreadSampling(t=0.1,
  success='reward')
Headline: 3.3 and 4.8 points over GRPO, 1.5B and 7B.
Evidence: verified in code (ZexuSun/CurES, by a digest); the norms of gradients
  are 1 but in cures@norms.
Paper and code: the code's draws are practically uniform, since its t grows with
  the number of right samples; not followed. There the numbers of samples stay
  for ten steps.
Command: python -m experiments.train --config=configs/worlds/families.py
  --method=cures --set=rollout.group_size=4 --set=model.path=runs/cures/warm
cures@norms measures the norms of the gradients of the embedding by the first
samples, as the paper does, and multiplies the spread with them.
cures@uniform is the control: as many samples of every prompt, in shuffled
passes; it needs rollout.group_size=8.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers.uncertainty_allocation import (
  UncertaintyAllocation,
)

BASELINE = 'grpo@no_kl'  # what influence compares it with

VARIANTS = {
  'norms': ('rollout.norms=true',),
  'uniform': ('selector=null', 'rollout=null'),
}


def get_method() -> Method:
  """GRPO with prompts and samples by their spread."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    selector=selection.SpreadSampling(),
    rollout=UncertaintyAllocation(rule='spread'),
  )
