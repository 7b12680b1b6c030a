"""The map from rewards to best policies, and how far it jumps.

Source: "The Policy Cliff: A Theoretical Analysis of Reward-Policy Maps in Large
Language Models", by its abstract; the bound is derived here.
"""

import numpy as np


def best_policy(reward_EA: np.ndarray, coef: float) -> np.ndarray:
  """argmax of E[r] + coef H over distributions of A answers, [E, A].

    pi(a) = exp(r(a) / coef) / sum_b exp(r(b) / coef)

  coef = 0: all mass on the largest rewards, in equal parts.
  """
  top_E1 = reward_EA.max(axis=1, keepdims=True)
  if coef == 0:
    weight_EA = (reward_EA == top_E1).astype(float)
  else:
    weight_EA = np.exp((reward_EA - top_E1) / coef)
  return weight_EA / weight_EA.sum(axis=1, keepdims=True)


def largest_change(coef: float, eps: float) -> float:
  """Bound on the total variation of `best_policy` where no reward moves by more
  than eps: min(1, eps / (2 coef)), 1 for coef = 0."""
  return 1.0 if 2 * coef <= eps else eps / (2 * coef)


def ascend(
  reward_EA: np.ndarray,
  coef: float,
  logits_A: np.ndarray,
  steps: int,
  rate: float = 1.0,
) -> np.ndarray:
  """The policy after exact gradient steps on its logits, [E, A].

  d/d logit(a) = pi(a) (q(a) - sum_b pi(b) q(b)),  q = r - coef log pi
  """
  logit_EA = np.tile(logits_A, (len(reward_EA), 1)).astype(float)
  log_pi_EA = logit_EA - np.logaddexp.reduce(logit_EA, 1, keepdims=True)
  for _ in range(steps):
    pi_EA = np.exp(log_pi_EA)
    q_EA = reward_EA - coef * log_pi_EA
    logit_EA += rate * pi_EA * (q_EA - (pi_EA * q_EA).sum(1, keepdims=True))
    log_pi_EA = logit_EA - np.logaddexp.reduce(logit_EA, 1, keepdims=True)
  return np.exp(log_pi_EA)
