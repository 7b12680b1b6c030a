"""Beginnings of walks, what they see, and the best of draws."""

import jax
import numpy as np

from experiments.papers.decoding import deal, searches
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import Example
from rl_jax.worlds import Coverage

TASK = Coverage(size=3, steps=4)


def test_begun_walks_by_hand():
  """On 3 by 3 cells three steps one way come back: 4 * 3 * 3 - 4 of 3 moves."""
  assert len(deal.begun_walks(TASK, 2)) == 12
  walks = deal.begun_walks(TASK, 3)
  assert 'NEN' in walks and 'NS' not in deal.begun_walks(TASK, 2)
  assert 'EEE' not in walks and len(walks) == 32


def test_components_are_those_of_the_whole_walk():
  """E0: as the task judges the text; a token that is not a move counts
  nothing.
  """
  tokenizer = CharTokenizer(TASK.alphabet)
  end = tokenizer.eos_ids[0]
  texts = ['ES', 'W', '', 'E@']
  response = np.full((4, 3), end, np.int32)
  for row, text in enumerate(texts):
    response[row, : len(text)] = tokenizer.encode(text)
  given = np.tile(np.array(tokenizer.encode('NE'), np.int32), (4, 1))
  lengths = np.array([len(text) for text in texts], np.int32)
  found = jax.jit(deal.covered(TASK, tokenizer))(given, response, lengths)
  for row, text in enumerate(texts):
    example = Example(prompt='@', answer='', id=0)
    for name, value in TASK.reward(example, 'NE' + text).items():
      np.testing.assert_allclose(found[name][row], value)


def test_best_of_takes_the_first_of_the_largest(toy):
  """Groups of two: the second, then the first of two equal ones."""
  traj = toy.trajectories(np.ones((4, 1)), group_size=2)
  traj = traj.replace(logp_behaviour_BT=-np.arange(4.0)[:, None])
  found = {'coverage': np.array([0.2, 0.5, 0.3, 0.3])}
  kept, best = deal.best_of(traj, found, 'coverage')
  np.testing.assert_array_equal(best['coverage'], [0.5, 0.3])
  assert searches.summary(kept, best) == {'coverage': 0.4, 'logp': -1.5}
