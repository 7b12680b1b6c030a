"""EGPO (FunRL): a bounded bonus for the entropy of the chain of thought.

Paper: Hao et al., "Exploring Superior Function Calls via Reinforcement
  Learning", 2025.
Change: against GRPO, lambda * clip(H, -|A|/alpha, |A|/alpha) is added to the
  advantage, H the mean token entropy of the thinking span.
Defaults: lambda 0.4, alpha 2, KL 1e-3. The task marks the span (think_mask_BT);
  --set=method.credit.EntropyShaping.span=response takes the whole response.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); EntropyShaping(coef=0.4,
  alpha=2.0, span='think'); PPOClip(clip_low=0.2, clip_high=0.2);
  KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean()
Headline: BFCL overall 86.02; up to 6 points over GRPO on multi-function calls.
Evidence: reconstructed from a verl reproduction plan; the official repository
  has no code.
Paper and code: not seen; nor over what the loss is averaged.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=egpo
egpo@scaled has lambda 4 and alpha 20: the bonus has the same bound, a fifth of
the advantage, and reaches it at a tenth of the entropy. Ours, for small worlds.
The pipeline egpo compares them with GRPO on calls of functions.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean

VARIANTS = {
  'scaled': (
    'credit.EntropyShaping.coef=4.0',
    'credit.EntropyShaping.alpha=20.0',
  ),
}


def get_method() -> Method:
  """GRPO with the entropy bonus in the advantage."""
  return Method(
    credit=(
      credit.GroupCenter(),
      credit.GroupScale(),
      credit.EntropyShaping(coef=0.4, alpha=2.0, span='think'),
    ),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=1e-3)),
    aggregation=SeqMeanTokenMean(),
  )
