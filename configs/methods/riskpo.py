"""RiskPO: bundles of prompts scored by a mixed value at risk.

Paper: "RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM
  Post-Training", 2025.
Change: against GRPO, the rewards of 5 prompts are summed to a score whose lower
  tail weighs more and whose upper tail is flat; there is no group mean.
Defaults: bundles of 5, levels 0.2 and 0.8, w 1.5, tracker 0.1, share credit,
  std on, constant off, clip 0.2, no KL (DAPO-Math script).
Pieces: BundleRisk(bundle=5, low=0.2, high=0.8, tail=1.5, rate=0.1, eps=1e-06,
  credit='share', scale=True, constant=False); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean()
Headline: DeepSeek-R1-Distill-Qwen-1.5B: 46.65 on average, DAPO 43.87, GRPO
  40.41.
Evidence: verified in code (RTkenny/RiskPO core_algos.py).
Paper and code: the paper clips a sequence ratio and permutes samples, the
  scripts clip token ratios and pair by index; the scripts are followed.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=riskpo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """Risk advantages of bundles in the clipped surrogate."""
  return Method(
    credit=(credit.BundleRisk(),),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
