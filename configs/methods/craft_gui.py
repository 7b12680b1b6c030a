"""CRAFT-GUI: short tasks first, then mixed ones, then long ones.

Paper: Nong et al., "CRAFT-GUI: Curriculum-Reinforced Agent For GUI Tasks",
  2025.
Change: against GRPO, the prompts come in three stages by the number of their
  steps; the reward is a weighted sum of the format, the type and the parameters
  of an action, which the task gives (its `reward_weights`).
Defaults: three stages of 20, 20 and all further batches: ours.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean();
  StagedLevels(levels=3, stages=((0, 0), (0, 1), (1, 2)), ends=(20, 40))
Headline: 5.6% on AndroidControl, 10.3% on a set of its authors.
Evidence: reconstructed from the abstract; the body was not available.
Paper and code: not seen.
Command: python -m experiments.train --config=configs/worlds/family_levels.py
  --method=craft_gui --set=model.path=runs/craft_gui/warm
craft_gui@uniform is the control: the same with prompts in shuffled passes.
craft_gui@understood has a level more, questions that a judge rewards, in its
last stage (configs/worlds/understood_levels.py).
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, selection
from rl_jax.pieces.aggregation import SeqMeanTokenMean

VARIANTS = {
  'uniform': ('selector=null',),
  'understood': (
    'selector.levels=4',
    'selector.stages=((0, 0), (0, 1), (2, 3))',
  ),
}


def get_method() -> Method:
  """GRPO on prompts in stages."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=1e-3)),
    aggregation=SeqMeanTokenMean(),
    selector=selection.StagedLevels(),
  )
