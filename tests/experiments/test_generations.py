"""Greedy responses as a file for judges outside."""

import numpy as np

from experiments import evaluate


def test_every_set_gives_its_questions_and_responses():
  """Sets without greedy responses give none; a set without a name has ''."""
  rows = {
    'greedy': np.array([1.0]),
    'responses': np.array(['two'], object),
    'questions': np.array(['1+1?'], object),
    'aime/samples': np.zeros((1, 2)),
    'math/responses': np.array(['3', '4'], object),
    'math/questions': np.array(['1+2?', '2+2?'], object),
  }
  found = evaluate.generations(rows, 'models/x')
  assert [tuple(one.values()) for one in found] == [
    ('', '1+1?', 'two', 'models/x'),
    ('math', '1+2?', '3', 'models/x'),
    ('math', '2+2?', '4', 'models/x'),
  ]
  names = ['dataset', 'instruction', 'output', 'generator']
  assert all(list(one) == names for one in found)
