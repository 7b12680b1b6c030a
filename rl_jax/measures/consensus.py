"""One answer out of several modes: the cheap ones, where they agree."""

from collections.abc import Mapping, Sequence

import numpy as np

from rl_jax.measures.best_of import CLUSTER, NO_ANSWER, keys_of
from rl_jax.tasks import base

_OUTCOME = f'reward/{base.OUTCOME}'


def metrics(sets: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
  """Numbers of the answer that all sets but the last give, else of the last.

  agreement: prompts for which all others give the same answer. pass_at_1: mean
  outcome, over the prompts of which the chosen response was judged. length:
  tokens of all responses that are written; the last one only without agreement.
  Source: "ARM: Adaptive Reasoning Model" (consensus-guided mode: direct answer,
  short chain of thought and code, then a long chain), from the text.

  Args:
    sets: a mapping for each mode, the most expensive last, with arrays [n, 1]
      of the same prompts: `length`, outcomes, and answers: cluster ids where
      the task has them, else `response`. A response that was not judged has no
      answer.
  """
  answers = [_answers(one) for one in sets]
  agreed_n = answers[0] != NO_ANSWER
  for other_n in answers[1:-1]:
    agreed_n &= other_n == answers[0]
  right_Sn = np.stack([one[_OUTCOME][:, 0] for one in sets])
  length_Sn = np.stack([one['length'][:, 0] for one in sets])
  right_n = np.where(agreed_n, right_Sn[0], right_Sn[-1])
  right_n = right_n[~np.isnan(right_n)]
  written_n = length_Sn[:-1].sum(0) + np.where(agreed_n, 0, length_Sn[-1])
  return {
    'agreement': agreed_n.mean(),
    'pass_at_1': right_n.mean() if right_n.size else np.nan,
    'length': written_n.mean(),
  }


def _answers(one):
  """A number for the answer of every prompt, [n]."""
  if CLUSTER in one:
    answer_n = one[CLUSTER][:, 0]
  else:
    answer_n = np.asarray(keys_of(one['response'][:, 0]))
  return np.where(np.isnan(one[_OUTCOME][:, 0]), NO_ANSWER, answer_n)
