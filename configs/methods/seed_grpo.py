"""SEED-GRPO: small updates where the answers to a prompt disagree.

Paper: Chen et al., "SEED-GRPO: Semantic Entropy Enhanced GRPO for
  Uncertainty-Aware Policy Optimization", 2025.
Change: against Dr. GRPO's advantage, a group's advantages are multiplied by
  1 / (1 + alpha H / log G), H the entropy of its answer clusters. Needs
  extras['cluster_id_B'] (see rl_jax/pieces/row_inputs.py): on own data
  --set=task.clusters=True.
Defaults: alpha 0.0417, likelihood clusters (third-party maxent_grpo; the
  paper's alpha is unverified); clip 0.2.
Pieces: GroupCenter(); SemanticEntropyScale(alpha=0.0417,
  estimator='likelihood', scale='reciprocal'); PPOClip(clip_low=0.2,
  clip_high=0.2); TokenMean()
Headline: 7B: AIME24 56.7, AMC 68.7, MATH 83.4, Minerva 34.2, Olympiad 48.0.
Evidence: reconstructed from a review and third-party code; the official
  repository has no code.
Paper and code: the paper names linear, exponential and focal factors and a
  Monte Carlo entropy, the code has 1 / (1 + z) and the plug-in entropy.
Command: python -m experiments.train
  --config=configs/worlds/arithmetic_described.py --method=seed_grpo
seed_grpo@scaled has alpha 1, so that a group of which all answers differ has
half of the step: ours, for small groups and worlds.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'dr_grpo'  # what influence compares it with

VARIANTS = {
  'scaled': ('credit.SemanticEntropyScale.alpha=1.0',),
}


def get_method() -> Method:
  """Centred advantages times a factor of the semantic entropy."""
  return Method(
    credit=(credit.GroupCenter(), credit.SemanticEntropyScale()),
    losses=(losses.PPOClip(),),
    aggregation=TokenMean(),
  )
