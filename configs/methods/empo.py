"""EMPO: the most common answer is the reward; no labels.

Paper: Zhang et al., "Right Question is Already Half the Answer: Fully
  Unsupervised LLM Reasoning Incentivization", 2025.
Change: against GRPO, the reward of a sample is the share of its group that
  gives the same answer. Needs
  extras['cluster_id_B'] (see rl_jax/pieces/row_inputs.py): on own data
  --set=task.clusters=True.
Defaults: std eps 1e-4, no KL, 7 samples (recipes).
Pieces: ClusterFrequency(); GroupCenter(); GroupScale(eps=0.0001, ddof=1);
  PPOClip(clip_low=0.2, clip_high=0.2); SeqMeanTokenMean()
Headline: Qwen2.5-Math-7B: 30.7 to 48.1 on average of the math benchmarks.
Evidence: verified in code (QingyangZhang/EMPO rewards.py).
Paper and code: the paper has two-sided entropy thresholds, the code drops only
  groups in which all answers differ; the code is followed.
Command: python -m experiments.train
  --config=configs/worlds/arithmetic_described.py --method=empo
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean


def get_method() -> Method:
  """GRPO on cluster frequencies."""
  return Method(
    shaping=(shaping.ClusterFrequency(),),
    credit=(credit.GroupCenter(), credit.GroupScale(eps=1e-4)),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
  )
