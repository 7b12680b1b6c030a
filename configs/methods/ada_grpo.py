"""Ada-GRPO (ARM): rare reasoning formats are rewarded more, at first.

Paper: Wu et al., "ARM: Adaptive Reasoning Model", 2025.
Change: against GRPO, a reward is multiplied by the inverse frequency of the
  format of its response in the group; a cosine brings the factor to 1; every
  token counts alike. Needs a task that returns `format_id`. The modes of the
  paper at evaluation are the policy's own choice, sets in a given mode and
  evaluation.consensus, as in configs/worlds/modes.py.
Defaults: KL 1e-3, clip 0.2 (run.sh). total_steps is 100 here; set it to the
  number of iterations: --set=method.shaping.FormatRarity.total_steps=500
Pieces: FormatRarity(total_steps=100.0); GroupCenter(); GroupScale(eps=1e-06,
  ddof=1); PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001,
  estimator='k3'); TokenMean()
Headline: 30% fewer tokens on average, up to 70%.
Evidence: verified in code (TEAM-ARM/ARM core_algos.py: rewards, masked means
  over tokens).
Paper and code: the same.
Command: python -m experiments.train --config=configs/worlds/modes.py
  --method=ada_grpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """GRPO on rewards scaled by format rarity."""
  return Method(
    shaping=(shaping.FormatRarity(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=1e-3)),
    aggregation=TokenMean(),
  )
