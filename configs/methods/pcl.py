"""PCL: prompts whose success a value model predicts to be near one half.

Paper: Gao et al., "Prompt Curriculum Learning for Efficient LLM Post-Training",
  2025.
Change: against GRPO without KL and standard deviation, the prompts of a batch
  are those of four times as many whose value is nearest to 0.5; the model of
  the values learns from each batch after it has been chosen.
Defaults: target 0.5, 4 candidates a prompt, on-policy, no KL. The rate of the
  value model, 1e-3, is ours.
Pieces: GroupCenter(); PPOClip(clip_low=0.2, clip_high=0.2); SeqMeanTokenMean();
  PromptValue(candidate_ratio=4, target=0.5, learning_rate=0.001,
  success='reward')
Headline: 12 and 17 times as fast a filter as rollouts on MATH and DeepScaleR.
Evidence: reconstructed from a note with the equations; no code was found.
Paper and code: not seen.
Command: python -m experiments.train --config=configs/worlds/graded.py
  --method=pcl --set=model.path=runs/explore_warm
pcl@shuffled is the control: the same with prompts in shuffled passes.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo@no_kl'  # what influence compares it with

VARIANTS = {'shuffled': ('selector=null',)}


def get_method() -> Method:
  """Centred rewards on prompts of the value model."""
  return Method(
    credit=(credit.GroupCenter(),),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    selector=selection.PromptValue(),
  )
