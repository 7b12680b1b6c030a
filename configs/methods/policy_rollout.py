"""PolicyRollout: half of a group is sampled with the rules in its prompt.

Paper: "Multimodal Policy Internalization for Conversational Agents" (TriMPI),
  2025.
Change: against GRPO, G samples with the text of a policy (here a hint of the
  task) in the prompt join the G of the plain prompt; the policy without the
  text learns from all 2 G by the ratio between its own probabilities.
Defaults: clip 0.2, KL 1e-3 as `grpo`; the paper's are unverified.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); KLPenalty(coef=0.001, estimator='k3'); SeqMeanTokenMean();
  HintGuided(solved_above=0.5, always=True, corrected=False)
Headline: ClevrPolicy-M 80.8 (GRPO) to 84.7, ClevrPolicy-T 55.9 to 65.9.
Evidence: reconstructed from notes on the objective; no code seen.
Paper and code: not compared. The third stage of TriMPI; before it come
  pretraining and supervised training on texts with the policy (the pipeline
  policy_rollout has the first). Ratios are 1
  before the first step, though half of the rows have another sampler: this
  bias is the paper's; policy_rollout@corrected has the ratio of Guide-GRPO.
Command: python -m experiments.train --config=configs/worlds/chain.py
  --method=policy_rollout --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers.guided import HintGuided

VARIANTS = {'corrected': ('rollout.corrected=true',)}


def get_method() -> Method:
  """GRPO on groups of plain and hinted rows."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty()),
    aggregation=SeqMeanTokenMean(),
    rollout=HintGuided(always=True, corrected=False),
  )
