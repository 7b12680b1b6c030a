"""DeepSeek-V3.2: GRPO that ignores bad responses that have become unlikely.

Paper: DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language
  Models", 2025.
Change: against GRPO, advantages are not divided by the group's deviation, rows
  of negative advantage leave the loss where the policy has moved far from the
  one that sampled them, and the KL term is unbiased under the policy of now.
Defaults: threshold 0.5 nats a token (trl proposes it; the paper has no number),
  clip 0.2 and KL coefficient 1e-3 as in GRPO (unpublished there).
Pieces: GroupCenter(); PPOClip(clip_low=0.2, clip_high=0.2);
  CorrectedKL(coef=0.001, estimator='k3'); OffPolicyMask(threshold=0.5,
  old='behaviour'); SeqMeanTokenMean()
Headline: unverified.
Evidence: verified in code (trl off_policy_mask_threshold and
  use_bias_correction_kl, by its documentation); the report by notes of others.
Paper and code: the report also keeps the routing of experts and the truncation
  of the sampler: method.logits are replayed when tokens are scored.
Command: python -m experiments.train --config=configs/worlds/stale.py
  --method=deepseek_v3p2 --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, weights
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO without deviations, with the mask and the corrected KL."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.PPOClip(), regularizers.CorrectedKL()),
    weights=(weights.OffPolicyMask(old='behaviour'),),
    aggregation=SeqMeanTokenMean(),
  )
