"""Conformal prediction on option probabilities: sets, one answer, or none.

Rows of calibration and of later use must be exchangeable; then a set at level a
holds the right option with probability 1 - a at least, whatever the model.
"""

import numpy as np

ONE, SET, NONE = 0, 1, 2  # what is done on a row
SHARPNESS = 5.0  # of the three weights
LEAST = 1e-6  # weight of each of them


def threshold(score_n: np.ndarray, level: float) -> float:
  """qhat(a) = higher quantile of the scores at ceil((n + 1)(1 - a)) / n.

  The quantile's level is clipped to [0, 1]: P(a new score <= qhat) >= 1 - a is
  guaranteed where (n + 1) a >= 1, see `check_size`.
  """
  n = len(score_n)
  rank = np.ceil((n + 1) * (1.0 - level) - 1e-9)  # not 9.000000001
  return float(np.quantile(score_n, np.clip(rank / n, 0, 1), method='higher'))


def check_size(n: int, level: float) -> None:
  """Raises ValueError if n calibration rows are too few for the level."""
  if (n + 1) * level < 1:
    raise ValueError(
      f'{n} calibration rows guarantee nothing at level {level}: that takes '
      f'1 / level - 1 = {1 / level - 1:g} at least'
    )


def lac_scores(prob_nA: np.ndarray) -> np.ndarray:
  """s = 1 - p of every option (least ambiguous sets), f[n, A].

  Source: "Least Ambiguous Set-Valued Classifiers with Bounded Error Levels".
  """
  return 1.0 - prob_nA


def aps_scores(prob_nA: np.ndarray) -> np.ndarray:
  """s = sum of the p that are at least that of the option, f[n, A].

  Source: "Classification with Valid and Adaptive Coverage", adaptive sets
  without its randomisation, so they are larger.
  """
  least_nAA = prob_nA[:, None, :] >= prob_nA[:, :, None]
  return (least_nAA * prob_nA[:, None, :]).sum(axis=2)


def of_answers(score_nA: np.ndarray, answer_n: np.ndarray) -> np.ndarray:
  """Scores of the right options, f[n]."""
  return np.take_along_axis(score_nA, answer_n[:, None], axis=1)[:, 0]


def sets(score_nA: np.ndarray, qhat: float) -> np.ndarray:
  """bool[n, A]: options whose score is at most qhat, and always the first of
  the smallest score, so that no set is empty.
  """
  first_nA = np.arange(score_nA.shape[1]) == score_nA.argmin(1)[:, None]
  return (score_nA <= qhat) | first_nA


def decision_weights(least_n: np.ndarray, q1: float, q2: float) -> np.ndarray:
  """P(one answer, a set, none) of rows whose smallest score is m, f[n, 3].

    w_one = sigmoid(-5 (m - q1)), w_none = sigmoid(5 (m - q2)),
    w_set = max(0, 1 - w_one - w_none), each at least 1e-6, normalised

  Source: "Learning Conformal Abstention Policies for Adaptive Risk Management
  in Large Language and Vision-Language Models"; released file
  src/models/conformal.py.
  """

  def sigmoid(x):
    return 0.5 * (1.0 + np.tanh(0.5 * x))

  one_n = sigmoid(-SHARPNESS * (least_n - q1))
  none_n = sigmoid(SHARPNESS * (least_n - q2))
  set_n = np.maximum(0.0, 1.0 - one_n - none_n)
  weight_n3 = np.maximum(np.stack([one_n, set_n, none_n], axis=1), LEAST)
  return weight_n3 / weight_n3.sum(axis=1, keepdims=True)


def outcomes(
  prob_nA: np.ndarray, answer_n: np.ndarray, q2: float, decision_n: np.ndarray
) -> dict[str, float]:
  """Means of rows on which ONE, SET or NONE was decided.

  accuracy: of the rows with an answer, a set is right if it holds the answer; 0
  without such rows. size: options of a set, mean over the sets only, 0 without
  any. abstained, one, set: fractions of all rows. risk: errors of the rows with
  one answer, nan without any. The sets are those of LAC at q2.
  """
  score_nA = lac_scores(prob_nA)
  set_nA = sets(score_nA, q2)
  right_n = np.where(
    decision_n == ONE,
    prob_nA.argmax(1) == answer_n,
    set_nA[np.arange(len(answer_n)), answer_n],
  )
  one_n, several_n = decision_n == ONE, decision_n == SET
  return {
    'accuracy': _mean(right_n[decision_n != NONE], 0.0),
    'size': _mean(set_nA.sum(1)[several_n], 0.0),
    'abstained': float((decision_n == NONE).mean()),
    'one': float(one_n.mean()),
    'set': float(several_n.mean()),
    'risk': _mean(~right_n[one_n], np.nan),
  }


def _mean(x_n, otherwise):
  return float(x_n.mean()) if x_n.size else otherwise


def cost(results: dict[str, float]) -> float:
  """(1 - acc) + .3 size + .3 none - .4 (1 - none) - .2 H + .5 (one - .8)_+.

  results: of `outcomes`; H: entropy of the fractions one, set and none, nats.
  Source: as `decision_weights`, configs/training_config.yaml.
  """
  none = results['abstained']
  fractions = np.array([results['one'], results['set'], none])
  entropy = -(fractions * np.log(np.maximum(fractions, 1e-300))).sum()
  return float(
    (1.0 - results['accuracy'])
    + 0.3 * results['size']
    + 0.3 * none
    - 0.4 * (1.0 - none)
    - 0.2 * entropy
    + 0.5 * max(0.0, results['one'] - 0.8)
  )


def risk_coverage(
  confidence_n: np.ndarray, right_n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """(coverage, risk), each f[n]: errors of the k surest rows, for every k."""
  order = np.argsort(-confidence_n, kind='stable')
  count_n = np.arange(1, len(order) + 1)
  return count_n / len(order), np.cumsum(~right_n[order]) / count_n
