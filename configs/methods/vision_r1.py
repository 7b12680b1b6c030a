"""Vision-R1: rewards of overlap whose thresholds harden on the way.

Paper: Zhan et al., "Vision-R1: Evolving Human-Free Alignment in Large
  Vision-Language Models via Vision-Guided Reinforcement Learning", 2025.
Change: against GRPO, the reward adds precision and recall of the predicted box,
  with thresholds that rise after 1500 rollouts.
Defaults: thresholds 0.5, 0.75, then 0.75, 0.9; eps 1e-4 of the scale (code).
  KL 1e-3 is ours: the release leaves the coefficient to TRL.
Pieces: OverlapStages(low=0.5, high=0.75, later_low=0.75, later_high=0.9,
  switch=1500); GroupCenter(); GroupScale(eps=0.0001, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.001, estimator='k3');
  SeqMeanTokenMean()
Headline: up to 50% relative over the 7B model.
Evidence: verified in code (jefferyZhan/Griffon Vision-R1, by a digest). With
  one box the overlap is that of the task; vision_r1@several takes the
  generalised overlap of several boxes, which the task has matched.
Command: python -m experiments.train --config=configs/worlds/boxes.py
  --method=vision_r1 --set=task.reward_weights="{'format': 1.0}"
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean

VARIANTS = {
  'several': ('shaping=(MatchedOverlapStages(),)',),
}


def get_method() -> Method:
  """The task's reward is the format only."""
  return Method(
    shaping=(shaping.OverlapStages(),),
    credit=(credit.GroupCenter(), credit.GroupScale(eps=1e-4)),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
  )
