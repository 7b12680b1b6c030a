"""Candidates of a log, and pairs among those that are accepted."""

from experiments.papers.preferences import rejection_pairs


def sample(response, step=1, prompt='a', ended_by='', error=None):
  """A line of a log, which says '' where the end token ended a response."""
  return {
    'step': step,
    'prompt': prompt,
    'response': response,
    'ended_by': ended_by,
    'error': error,
  }


def test_candidates_are_different_and_finished():
  samples = [
    sample('x'),
    sample('x'),
    sample('y'),
    sample('cut', ended_by=None),
    sample('failed', error='no'),
    sample(''),  # which no row of a file may be
    sample('x', step=2),
    sample('z', step=2, prompt='b'),
    sample('w', step=2, prompt='b'),
  ]
  assert list(rejection_pairs.candidates(samples)) == [
    {'prompt': 'a', 'chosen': ['x'], 'rejected': ['y']},
    {'prompt': 'b', 'chosen': ['z'], 'rejected': ['w']},
  ]


def rows(scores):
  texts = [f'{score}/{i}' for i, score in enumerate(scores)]
  return [{'prompt': 'a', 'responses': texts, 'scores': scores}] * 5


def test_the_larger_score_is_chosen_and_every_sample_is_in_one_pair():
  found = list(rejection_pairs.pairs(rows([0.0, 3.0, 1.0, 2.0]), 1e9, 4, 0))
  assert len(found) == 10
  for pair in found:
    assert float(pair['chosen'][:3]) > float(pair['rejected'][:3])
  for i in range(0, 10, 2):
    texts = {x[k] for x in found[i : i + 2] for k in ('chosen', 'rejected')}
    assert len(texts) == 4
  assert found != list(
    rejection_pairs.pairs(rows([0.0, 3.0, 1.0, 2.0]), 1e9, 4, 1)
  )


def test_beta_zero_pairs_the_best_and_equal_scores_make_no_pair():
  best = list(rejection_pairs.pairs(rows([0.0, 3.0, 1.0, 2.0]), 0.0, 2, 0))
  assert {(x['chosen'], x['rejected']) for x in best} == {('3.0/1', '2.0/3')}
  assert not list(rejection_pairs.pairs(rows([1.0, 1.0, 1.0]), 0.5, 2, 0))
