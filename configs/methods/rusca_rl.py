"""RuscaRL: GRPO whose samples see falling shares of the rubric.

Paper: "Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement
  Learning for General LLM Reasoning", 2025.
Change: against GRPO, sample k of a group sees a part of the criteria by which
  it is graded in its prompt; the part falls over the group and over training.
Defaults: midpoint 0.2, steepness 125, 350 rollouts, KL 1e-3, groups of 8.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean();
  RubricScaffold(rollouts=350, midpoint=0.2, steepness=125.0, corrected=False)
Headline: HealthBench-500 23.6 -> 50.3 (7B; paper).
Evidence: verified in code (RuscaRL vllm_rollout_spmd.py, by a digest of the
  code); that ratios divide by the probability without criteria is ours.
Command: python -m experiments.train --config=configs/worlds/rubric_topics.py
  --method=rusca_rl --set=model.path=runs/rusca_rl/warm
The pipeline rusca_rl makes that start.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers.rubric_scaffold import RubricScaffold

VARIANTS = {'corrected': ('rollout.corrected=true',)}


def get_method() -> Method:
  """GRPO with scaffolded rollouts."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
    rollout=RubricScaffold(),
  )
