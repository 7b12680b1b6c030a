"""Lite PPO: group mean, batch standard deviation, token mean.

Paper: Liu et al., "Part I: Tricks or Traps? A Deep Dive into RL for LLM
  Reasoning", 2025.
Change: against GRPO, rewards are divided by the standard deviation of the whole
  rollout and every token counts alike; no KL.
Defaults: clip 0.2, eps 1e-6, ddof 1 (ROLL); 128 prompts with 8 samples.
Pieces: BatchScale(eps=1e-06, ddof=1); GroupCenter(); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean()
Headline: Qwen3-8B, average: easy data 62.17 (DAPO 60.66), hard data 66.96 (DAPO
  64.17), from a secondary source.
Evidence: verified in code (ROLL functionals.py).
Paper and code: ROLL's template lists GAE, whitening and a KL of 0.001, which
  the method does not need.
Command: python -m experiments.train --config=configs/worlds/arithmetic.py
  --method=lite_ppo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """The deviation of the raw rewards, then group centring."""
  return Method(
    credit=(credit.BatchScale(), credit.GroupCenter()),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
