"""The rules of RewardBench 2: best of four, and ties.

Source: allenai/reward-bench, rewardbench/utils.py and scripts/run_v2.py (by a
digest of the code).
"""

from collections.abc import Mapping, Sequence

import numpy as np

TIES = 'Ties'


def best_of(right: Sequence[float], wrong: Sequence[float]) -> float:
  """1 / (number of completions with the largest score), 0 if none is right.

  With one right completion of four, chance is 0.25.
  """
  best = max(*right, *wrong)
  tied = sum(score == best for score in (*right, *wrong))
  return sum(score == best for score in right) / tied


def ties(
  prompts: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> float:
  """The score of the section of prompts with several right completions.

    0.3 acc_tied + 0.3 acc_ref + 0.2 mean(ci_tied > spread)
    + 0.2 mean(min(ci_ref, ci_tied) > spread)
    + 0.01 mean(tanh(min(ci_ref, ci_tied) / spread - 1))

  ci: the worst right less the best wrong score; acc: how often it is positive;
  spread: the best less the worst right score of the tied prompt. At most 1.01.
  A positive gap over a spread of 0 counts as 1, 0 / 0 as 0.

  Args:
    prompts: {'tied:ID' or 'ref:ID': (right scores, wrong scores)}; every tied
      prompt has a reference with one right completion.

  Raises: ValueError naming a prompt without its partner.
  """
  names = [key.partition(':')[2] for key in prompts if key.startswith('tied:')]
  for name in names:
    if f'ref:{name}' not in prompts:
      raise ValueError(f"row 'tied:{name}' has no row 'ref:{name}'")

  def gap(key):
    return min(prompts[key][0]) - max(prompts[key][1])

  tied = np.array([gap(f'tied:{name}') for name in names])
  ref = np.array([gap(f'ref:{name}') for name in names])
  right = [prompts[f'tied:{name}'][0] for name in names]
  spread = np.array([max(scores) - min(scores) for scores in right])
  least = np.minimum(tied, ref)
  with np.errstate(divide='ignore', invalid='ignore'):
    margin = np.nan_to_num(np.tanh(least / spread - 1), nan=0.0)
  return float(
    0.3 * (tied > 0).mean()
    + 0.3 * (ref > 0).mean()
    + 0.2 * (tied > spread).mean()
    + 0.2 * (least > spread).mean()
    + 0.01 * margin.mean()
  )


def sections(
  rows: Sequence[tuple[str, str, Sequence[float], Sequence[float]]],
) -> dict[str, float]:
  """{section: score} of (section, id, right scores, wrong scores); `mean`.

  The mean over sections has equal weights.
  """
  found: dict[str, float] = {}
  for name in sorted({section for section, *_ in rows}):
    own = [row[1:] for row in rows if row[0] == name]
    if name == TIES:
      found[name] = ties({key: (right, wrong) for key, right, wrong in own})
    else:
      found[name] = float(np.mean([best_of(r, w) for _, r, w in own]))
  return {**found, 'mean': float(np.mean(list(found.values())))}
