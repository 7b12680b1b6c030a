"""MoPPS: prompts are chosen by a posterior of their success rate.

Paper: Qu et al., "Can Prompt Difficulty be Online Predicted for Accelerating RL
  Finetuning of Reasoning Models?", 2025.
Change: against DAPO without dynamic sampling, the next prompts are those of 8
  times as many candidates whose Beta posterior draw is nearest to 0.5.
Defaults: target 0.5, 8 candidates a prompt, decay 0.5, prior (1, 1); clip
  0.2/0.28, entropy 1e-3, token mean, no KL (countdown script).
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.28); EntropyBonus(coef=0.001); TokenMean();
  BetaPosterior(candidate_ratio=8, target=0.5, low=0.3, high=0.7, decay=0.5,
  prior_success=1.0, prior_failure=1.0, rule='nearest', success='reward')
Headline: accuracy of dynamic sampling with far fewer rollouts.
Evidence: verified in code (thu-rllab/MoPPS mopps.py).
Paper and code: with one sample a prompt the code sets a = b = 8 by operator
  precedence; not followed.
Command: python -m experiments.train --config=configs/worlds/graded.py
  --method=mopps --set=model.path=runs/explore_warm
mopps@shuffled is the control: the same with prompts in shuffled passes.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, selection
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'clip_higher'  # what influence compares it with

VARIANTS = {'shuffled': ('selector=null',)}


def get_method() -> Method:
  """GRPO advantages on posterior-selected prompts."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(
      losses.PPOClip(clip_low=0.2, clip_high=0.28),
      regularizers.EntropyBonus(coef=1e-3),
    ),
    aggregation=TokenMean(),
    selector=selection.BetaPosterior(),
  )
