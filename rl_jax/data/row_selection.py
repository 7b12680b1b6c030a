"""Scores of recorded rows, and the rows that are kept by them."""

from collections.abc import Sequence

import numpy as np

# The part of the rows that is kept, in the order of their scores.
PARTS = ('highest', 'middle', 'lowest')
# The measures of `informativeness`.
SPREADS = ('range', 'regret', 'variance')


def ranks(score_N: np.ndarray) -> np.ndarray:
  """Ranks from 0 (the lowest score) to 1 (the highest), float64 [N].

  Equal scores have the mean of their ranks, so that no order of the rows
  counts; a single row has rank 1/2.
  """
  score_N = _finite(score_N)
  if len(score_N) == 1:
    return np.full(1, 0.5)
  _, place_N, count_U = np.unique(
    score_N, return_inverse=True, return_counts=True
  )
  last_U = np.cumsum(count_U)
  middle_U = last_U - (count_U + 1) / 2
  return middle_U[place_N] / (len(score_N) - 1)


def joint_rank(
  difficulty_N: np.ndarray, length_N: np.ndarray, weight: float = 0.25
) -> np.ndarray:
  """Select2Reason: weight * rank(difficulty) + (1 - weight) * rank(length).

  weight 0 is the rank of the lengths only; what is monotone in a score changes
  nothing. Source: "Select2Reason: Efficient Instruction-Tuning Data Selection
  for Long-CoT Reasoning", by reviews; there a judge gives the difficulty.
  Raises: ValueError for scores of different numbers of rows.
  """
  if not 0 <= weight <= 1:
    raise ValueError(f'weight = {weight}: it is from 0 to 1')
  if len(difficulty_N) != len(length_N):
    raise ValueError(
      f'{len(difficulty_N)} difficulties and {len(length_N)} lengths'
    )
  return weight * ranks(difficulty_N) + (1 - weight) * ranks(length_N)


def informativeness(reward_NK: np.ndarray, kind: str = 'range') -> np.ndarray:
  """Returns how far apart the rewards of K responses to a row are, [N].

  eva: 'range' is max - min, 'regret' max - mean, 'variance' with 1 / K. A
  number added to all rewards changes nothing; NaN is a response that was not
  judged, and a row with fewer than two others has 0.
  Source: Ye et al., "Scalable Reinforcement Post-Training Beyond Static Human
  Prompts: Evolving Alignment via Asymmetric Self-Play", 2024, by memory:
  reconstructed.
  """
  if kind not in SPREADS:
    raise ValueError(f'kind = {kind!r} is none of {", ".join(SPREADS)}')
  reward_NK = np.asarray(reward_NK, np.float64)
  live_N = np.isfinite(reward_NK).sum(1) > 1
  reward_NK = np.where(live_N[:, None], reward_NK, 0.0)
  best_N = np.nanmax(reward_NK, axis=1)
  return {
    'range': best_N - np.nanmin(reward_NK, axis=1),
    'regret': best_N - np.nanmean(reward_NK, axis=1),
    'variance': np.nanvar(reward_NK, axis=1),
  }[kind]


def drawn(
  score_N: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
  """Indices of so many rows, ascending, drawn one after the other without
  replacement, each with probability score / sum of the scores.

  Rows of score 0 are drawn, alike, once no others are left.
  Raises: ValueError for scores below 0, and as `keep` does.
  """
  score_N = _finite(score_N)
  if (score_N < 0).any():
    raise ValueError(f'row {int(np.argmax(score_N < 0))} has a score below 0')
  if not 1 <= count <= len(score_N):
    raise ValueError(f'{count} rows to draw of {len(score_N)}')
  # The largest of log score + Gumbel noise, one after the other.
  noise_N = rng.gumbel(size=len(score_N))
  size_N = np.log(np.where(score_N > 0, score_N, 1.0)) + noise_N
  order_N = np.lexsort((-size_N, score_N == 0))
  return np.sort(order_N[:count])


def accepted(
  score_K: np.ndarray, count: int, beta: float, rng: np.random.Generator
) -> np.ndarray:
  """Returns min(count, K) indices as of draws from p exp(score / beta), where
  p is what the K candidates were drawn from; in the order of acceptance.

  Repeat: in the order of the candidates that remain each is accepted where
  u < exp((score - largest score that remains) / beta), u uniform. The best
  that remains always is. beta 0: the highest scores; beta infinite: the first
  candidates. Source: Liu et al., "Statistical Rejection Sampling Improves
  Preference Optimization", 2023, appendix A.1 (by a digest).
  Raises: ValueError for scores that are not finite, or beta below 0.
  """
  score_K = _finite(score_K)
  if not beta >= 0:
    raise ValueError(f'beta = {beta}: it is not below 0')
  found: list[int] = []
  left_L = np.arange(len(score_K))
  while len(left_L) and len(found) < count:
    gap_L = score_K[left_L] - score_K[left_L].max()
    scaled_L = gap_L / beta if beta > 0 else np.where(gap_L < 0, -np.inf, 0.0)
    passed_L = rng.uniform(size=len(left_L)) < np.exp(scaled_L)
    found.extend(left_L[passed_L])
    left_L = left_L[~passed_L]
  return np.asarray(found[:count], int)


def weight_changes(
  inner_N: np.ndarray, square_N: np.ndarray, norm: float, step_size: float
) -> tuple[np.ndarray, np.ndarray]:
  """DONOD: (|W'| - |W|, |W' - W|) after one step W' = W - step_size g of a row.

    DON = sqrt(|W|^2 - 2 eta <g, W> + eta^2 |g|^2) - |W|,  NOD = eta |g|

  inner_N: <g, W>. square_N: |g|^2. norm: |W|, of the output layer; all norms
  are of Frobenius. Source: "DONOD: Robust and Generalizable Instruction
  Fine-Tuning for LLMs via Model-Intrinsic Dataset Pruning", by an abstract; the
  closed form is ours, and its step that of plain SGD.
  """
  if not step_size > 0:
    raise ValueError(f'step_size = {step_size}: it is above 0')
  change_N = step_size * (step_size * square_N - 2 * inner_N)
  after_N = np.sqrt(np.maximum(norm**2 + change_N, 0.0))
  # A difference of two almost equal norms, without cancellation.
  grown_N = change_N / (after_N + norm)
  return grown_N, step_size * np.sqrt(square_N)


def closeness(
  costs_NC: np.ndarray, benefits: Sequence[bool] | None = None
) -> np.ndarray:
  """TOPSIS: how near each row is to the best of every column, from 0 to 1, [N].

    t = column / |column|,  C = |t - worst| / (|t - best| + |t - worst|)

  best and worst are the least and the largest of a cost, and the reverse of a
  benefit. benefits: whether a column is one; None: all are costs. The scale of
  a column changes nothing. Rows that are equal in all columns have 1.
  """
  costs_NC = _finite(costs_NC)
  size_C = np.linalg.norm(costs_NC, axis=0)
  scaled_NC = costs_NC / np.where(size_C > 0, size_C, 1.0)
  if benefits is not None:
    scaled_NC = np.where(np.asarray(benefits), -scaled_NC, scaled_NC)
  best_N = np.linalg.norm(scaled_NC - scaled_NC.min(0), axis=1)
  worst_N = np.linalg.norm(scaled_NC - scaled_NC.max(0), axis=1)
  total_N = best_N + worst_N
  return np.where(total_N > 0, worst_N / np.where(total_N > 0, total_N, 1), 1.0)


def keep(score_N: np.ndarray, count: int, part: str = 'highest') -> np.ndarray:
  """Indices of the rows that are kept, ascending; of equal scores the first.

  part: the highest scores, the lowest, or the middle ones, as many of which are
  left out above them as below, or one more above.
  Raises: ValueError unless 1 <= count <= N and the scores are finite.
  """
  score_N = _finite(score_N)
  if part not in PARTS:
    raise ValueError(f'part = {part!r} is none of {", ".join(PARTS)}')
  if not 1 <= count <= len(score_N):
    raise ValueError(
      f'{count} rows to keep of {len(score_N)}: none, or too few'
    )
  sign = 1 if part == 'lowest' else -1
  order_N = np.argsort(sign * score_N, kind='stable')
  left_out = len(score_N) - count
  first = left_out - left_out // 2 if part == 'middle' else 0
  return np.sort(order_N[first : first + count])


def _finite(scores) -> np.ndarray:
  """The scores as float64. Raises: ValueError without a row, or for NaN."""
  found = np.asarray(scores, np.float64)
  if not len(found):
    raise ValueError('there are no rows to score')
  wrong = ~np.isfinite(found).reshape(len(found), -1).all(1)
  if wrong.any():
    raise ValueError(f'row {int(np.argmax(wrong))} has no finite score')
  return found


def wrong_shares(outcome_NK: np.ndarray) -> np.ndarray:
  """Returns the share of wrong responses of each row, float64 [N].

  Outcomes from 0 to 1; NaN is a response that was not judged. A row without a
  judged one counts as wrong.
  """
  known_NK = np.isfinite(outcome_NK)
  right_N = np.where(known_NK, outcome_NK, 0.0).sum(axis=1)
  return 1.0 - right_N / np.maximum(known_NK.sum(axis=1), 1)


def deficiency(wrong_N: np.ndarray, loss_N: np.ndarray) -> np.ndarray:
  """Returns how much a policy lacks each row, float64 [N].

    number of the smaller shares of wrong responses + rank(loss) / 2

  More wrong responses come first, whatever the losses are; among rows with as
  many, the response of the data that surprises the policy more. Source: the
  deficient items, wrong or of high perplexity, of "Boosting Tool Use of Large
  Language Models via Iterative Reinforced Fine-Tuning"; their order is
  reconstructed.
  Raises: ValueError for scores of different numbers of rows.
  """
  if len(wrong_N) != len(loss_N):
    raise ValueError(f'{len(wrong_N)} shares and {len(loss_N)} losses')
  _, smaller_N = np.unique(_finite(wrong_N), return_inverse=True)
  return smaller_N + ranks(loss_N) / 2


def unsolved(
  wrong_N: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
  """Returns the rows that are kept when solved ones are discarded, in order.

  A row is solved if none of its responses is wrong; of those `share`, rounded
  down, are drawn and stay. VerIPO discards 80% between its stages.
  """
  solved_S = np.flatnonzero(wrong_N <= 0)
  stays = rng.permutation(solved_S)[: int(share * len(solved_S) + 1e-9)]
  return np.sort(np.concatenate([np.flatnonzero(wrong_N > 0), stays]))
