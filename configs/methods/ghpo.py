"""GHPO: prompts without a right sample get longer and longer hints.

Paper: Liu et al., "GHPO: Adaptive Guidance for Stable and Efficient LLM
  Reinforcement Learning", 2025.
Change: against GRPO without KL with the mean over tokens, a group without a
  right sample is sampled again with the first 25% of the solution in its
  prompt, then with 50% and 75%; it is trained under that prompt.
Defaults: shares 0.25, 0.5, 0.75, eps 1e-4, KL off, clip 0.2, the mean over
  tokens (code). Rewards there are accuracy + 0.5 format, so that at most 0.5 is
  a wrong answer.
Pieces: GroupCenter(); GroupScale(eps=0.0001, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean(); StagedHints(shares=(0.25, 0.5, 0.75),
  solved_above=0.5)
Headline: 4 to 5 points over GRPO on six math benchmarks (Qwen2.5-7B).
Evidence: verified in code (hkgc-1/GHPO src/ghpo/ghpo_trainer.py); the numbers
  are unverified.
Paper and code: the code cuts the solution by characters, here the task does, by
  steps or lines. In the code a group that an early hint has solved loses this
  hint from its prompt, not its responses, if another group continues to a later
  stage; here it is trained under the prompt from which it was sampled. The
  code's start_hint_step (0 by default), which delays hints, is not here.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=ghpo --set=model.path=runs/chain_warm
  --set=rollout.max_prompt_tokens=64 --set=model.config.max_positions=128
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.rollouts.wrappers.staged_hints import StagedHints

BASELINE = 'grpo@token_mean'  # what influence compares it with


def get_method() -> Method:
  """GRPO with hints in stages."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale(eps=1e-4)),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
    rollout=StagedHints(),
  )
