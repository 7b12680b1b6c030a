"""MaxMin-RLHF: the group of people that is served worst sets the reward.

Paper: Chakraborty et al., "MaxMin-RLHF: Towards Equitable Alignment with
  Diverse Human Preferences", 2024.
Change: against GRPO, an iteration maximises the one reward whose mean over its
  samples is smallest. The KL is the same for all and chooses none. Rewards of
  groups of people are heads of one model of --method=annotator_mixture:
  --set="method.shaping.WorstComponent.components=('a', 'b')" with
  --add='reward_models=RewardModel(name="a", path=..., weight=0.0,
  head_weights=(1.0, 0.0))' and the same of b with (0.0, 1.0).
Defaults: two components (paper: K = 2); GRPO's KL and scale, where the paper
  has PPO.
Pieces: WorstComponent(components=('outcome', 'format')); GroupCenter();
  GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2, clip_high=0.2);
  KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean()
Headline: unverified.
Evidence: reconstructed (formula from memory of the paper).
Command: python -m experiments.train --config=configs/countdown.py
  --method=maxmin
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on the worst component."""
  return Method(
    shaping=(shaping.WorstComponent(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
