"""RLPrompt: soft Q-learning with logits as action values, rewards by z-score.

Paper: Deng et al., "RLPrompt: Optimizing Discrete Text Prompts with
  Reinforcement Learning", 2022.
Change: against REINFORCE, logits are fitted to soft values: each log-prob to
  the difference of values of a slow copy, and the rest of the row to R - V.
Defaults: R is five times the z-score of the group (eps 1e-4, population std);
  the slow copy moves by 1e-3.
Pieces: GroupCenter(); GroupScale(eps=0.0001, ddof=0);
  PathConsistency(scale=5.0, target=Average(decay=0.999, iterations=1));
  SeqMeanTokenSum()
Headline: few-shot accuracy above that of tuning baselines (paper, unverified).
Evidence: verified in code (mingkaid/rl-prompt, by digest).
Paper and code: there a small network on a frozen model is the policy. Any task
  may give the reward; the paper's, label probabilities of a frozen model with
  two slopes, is that of worlds.TriggeredLabels.
Command: python -m experiments.train --config=configs/worlds/triggered_labels.py
  --method=rlprompt --workdir=runs/triggered_labels
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """The sum over tokens, the mean over rows."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale(eps=1e-4, ddof=0)),
    losses=(losses.PathConsistency(),),
    aggregation=SeqMeanTokenSum(),
  )
