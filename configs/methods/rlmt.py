"""RLMT: thoughts are free, a reward model reads the response after them.

Paper: "Language Models that Think, Chat Better", 2025.
Change: against GRPO, an entropy bonus; what differs is the reward, a model that
  sees only what follows a delimiter: --add='judges=Judge(path=...,
  reads="value", chat=True, begin="<response>", end="</response>")'.
Defaults: clip 0.2, KL and entropy 0.001, 8 samples, 64 prompts, temperature
  0.7, learning rate 1e-6.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); EntropyBonus(coef=0.001); KLPenalty(coef=0.001,
  estimator='k3'); SeqMeanTokenMean()
Headline: 3 to 7 points on AlpacaEval2, WildBench and ArenaHardV2.
Evidence: verified in code (princeton-pli/RLMT, by a digest).
Paper and code: without its strict switch the code scores the whole text, the
  thoughts too, where the delimiter is missing; Judge scores '[NULL]'.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=rlmt
The pipeline rlmt has a judge of what comes after the thoughts.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO with an entropy bonus."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(
      losses.PPOClip(),
      regularizers.EntropyBonus(coef=1e-3),
      regularizers.KLPenalty(coef=1e-3),
    ),
    aggregation=SeqMeanTokenMean(),
  )
