"""LSPO: clusters of texts, and pairs whose DPO optimum is the strategy."""

import collections

import numpy as np
import pytest

from experiments.papers.episodes import latent_strategies
from experiments.pipelines import latents
from rl_jax.worlds import SpokenMoves


def test_letter_pairs_by_hand():
  """' ab ' and ' b ': pairs ' a', ' b', 'ab', 'b '."""
  found_ND = latents.letter_pairs(['ab', 'b'])
  np.testing.assert_allclose(found_ND[0] * 3**0.5, [1, 0, 1, 1])
  np.testing.assert_allclose(found_ND[1] * 2**0.5, [0, 1, 0, 1])


def test_clusters():
  """Texts of one move each; one cluster, and fewer points than asked for."""
  task = SpokenMoves()
  texts = [*task.texts('p'), *task.texts('b')]
  points_ND = latents.letter_pairs(texts)
  label_N = latents.clusters(points_ND, 4, np.random.default_rng(0))
  assert len(set(label_N)) == 4
  for z in range(4):
    of = zip(label_N, texts, strict=True)
    assert len({task.move(text) for label, text in of if label == z}) == 1
  rng = np.random.default_rng(0)
  assert not latents.clusters(points_ND, 1, rng).any()
  assert set(latents.clusters(np.eye(2)[[0, 1, 1]], 5, rng)) == {0, 1}


def test_pairs_prefer_by_the_odds_of_strategy_and_samples():
  """Shares 3/4, 1/4 and strategy 1/2, 1/2: w = 2/3, 2; P(1 first) = 3/4.

  So beta (log-ratio of 1 - that of 0) = log 3, and pi = (3/4, 1/4) * (1, 3)
  normalised = (1/2, 1/2): the strategy.
  """
  label_N = np.array([0, 0, 0, 1])
  rng = np.random.default_rng(0)
  strategy_Z = np.array([0.5, 0.5, 0.0])
  found = list(latents.pairs(label_N, strategy_Z, 4000, rng))
  assert all(label_N[i] != label_N[j] for i, j in found)
  first = np.mean([label_N[i] for i, _ in found])
  assert first == pytest.approx(0.75, abs=0.03)
  one = np.zeros(4, int)  # one latent: nothing is learned
  assert not list(latents.pairs(one, np.ones(1), 50, rng))
  never = np.array([0.0, 0.0, 1.0])
  assert not list(latents.pairs(label_N, never, 50, rng))


def test_a_step_from_random_talk():
  """NashConv 11/12 of the uniform policy; what is solved is near equilibrium.

  With king and a bet before, passing is dominated: no pair prefers it.
  """
  pytest.importorskip('pyspiel', reason="needs the extra 'games'")
  task = SpokenMoves()
  texts = [*task.texts('p'), *task.texts('b')]
  table = [dict.fromkeys(texts, 1 / len(texts)) for _ in task.situations()]
  sizes = latent_strategies.Sizes(
    clusters=4, samples=64, pairs=32, iterations=60
  )
  rng = np.random.default_rng(0)
  rows, found = latent_strategies.step(task, table, sizes, rng)
  assert found['nash_conv'] == pytest.approx(11 / 12)
  assert found['solved_nash_conv'] < 0.1 and found['pure'] == 1.0
  assert found['pairs'] == len(rows)
  counts = collections.Counter(
    (task.move(row['chosen']), task.move(row['rejected']))
    for row in rows
    if row['prompt'] == '12b>'
  )
  assert counts['b', 'p'] > 10 and counts['p', 'b'] <= 1
