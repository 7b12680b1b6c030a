"""REX-RAG: failed episodes continue after an inserted reflection.

Paper: "REX-RAG: Reasoning Exploration with Policy Correction in
  Retrieval-Augmented Generation", 2025.
Change: against GRPO without KL, some failed episodes are cloned without their
  last turn, which begins with a given text and is sampled again; ratios are to
  the mixture of the policy and of what made the clones.
Defaults: clone rate 0.2, at most 0.08 of the rows, clip 0.2; the texts are
  thoughts of configs/worlds/lookup.py.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean(); ReflectedClones(texts=('xy', 'xz', 'zy'),
  clone_rate=0.2, keep_ratio=0.08, solved_above=0.5)
Headline: 5.1 points (3B) and 3.6 (7B) over baselines like Search-R1 on seven
  sets of questions.
Evidence: reconstructed from a digest of the official code, not read itself.
Paper and code: there 30 sentences such as "But wait", of which the trie gives
  the probabilities, and KL 0.001.
Command: python -m experiments.train --config=configs/worlds/lookup.py
  --method=rex_rag
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.rollouts.wrappers.reflected_clones import ReflectedClones

BASELINE = 'grpo@no_kl'  # what influence compares it with


def get_method() -> Method:
  """GRPO with reflections."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    rollout=ReflectedClones(texts=('xy', 'xz', 'zy')),
  )
