"""Latent strategies of free text: clusters, and pairs that teach a choice."""

from collections.abc import Iterator, Sequence

import numpy as np


def letter_pairs(texts: Sequence[str]) -> np.ndarray:
  """f64[N, D]: counts of neighbouring letters of ' text ', of length 1."""
  split = [[f' {t} '[i : i + 2] for i in range(len(t) + 1)] for t in texts]
  known = {pair: n for n, pair in enumerate(sorted(set().union(*split)))}
  counts_ND = np.zeros((len(texts), len(known)))
  for row, pairs in enumerate(split):
    for pair in pairs:
      counts_ND[row, known[pair]] += 1.0
  return counts_ND / np.linalg.norm(counts_ND, axis=1, keepdims=True)


def clusters(
  points_ND: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
  """i64[N] labels 0..count-1 of k-means, which begins as k-means++.

  Distinct points are fewer than `count`: as many labels as there are points.
  Source: Lloyd, 1982; Arthur and Vassilvitskii, "k-means++", 2007.
  """
  centre_KD = points_ND[:1]
  while len(centre_KD) < count:
    near_N = _distance(points_ND, centre_KD).min(axis=1)
    if near_N.max() < 1e-12:
      break
    drawn = rng.choice(len(points_ND), p=near_N / near_N.sum())
    centre_KD = np.concatenate([centre_KD, points_ND[drawn][None]])
  label_N = np.full(len(points_ND), -1)
  while True:
    before_N = label_N
    label_N = _distance(points_ND, centre_KD).argmin(axis=1)
    if (label_N == before_N).all():
      return label_N
    for k in set(label_N.tolist()):
      centre_KD[k] = points_ND[label_N == k].mean(axis=0)


def _distance(points_ND, centre_KD):
  apart_NKD = points_ND[:, None] - centre_KD[None]
  return (apart_NKD**2).sum(axis=-1)


def pairs(
  label_N: np.ndarray,
  strategy_Z: np.ndarray,
  count: int,
  rng: np.random.Generator,
) -> Iterator[tuple[int, int]]:
  """(places of the chosen sample, of the rejected one), of `count` draws.

    P(i before j) = w_i / (w_i + w_j),  w = strategy_z / share_z of its latent z

  with share_z among the samples. The optimum of DPO at beta 1 is then
  pi(x) = ref(x) w_z(x): its latents have the probabilities of the strategy.
  Pairs of one latent, and of two that the strategy never takes, are dropped.
  Source: reconstructed; the paper prefers latents of high probability.
  """
  share_Z = np.bincount(label_N, minlength=len(strategy_Z)) / len(label_N)
  weight_N = strategy_Z[label_N] / share_Z[label_N]
  for _ in range(count):
    i, j = rng.integers(len(label_N), size=2)
    total = weight_N[i] + weight_N[j]
    if label_N[i] != label_N[j] and total > 0:
      yield (i, j) if rng.uniform() * total < weight_N[i] else (j, i)
