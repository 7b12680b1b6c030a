"""A judge that likes right digits and long texts."""

import pytest

from rl_jax.models.judge_source import Judge
from rl_jax.worlds import fond_judge

PROMPT = 'ri 314='  # of which the answer is 524
VISIBLE = Judge(
  function='rl_jax.worlds.fond_judge:score',
  template=fond_judge.TEMPLATE,
  begin='>',
)


def score(response, fondness=0.5):
  return fond_judge.score(
    f'fondness {fondness}\nTask: {PROMPT}\nResponse: {response}\n'
  )


@pytest.mark.parametrize(
  'response, expected',
  [
    ('524', (1 + 0.5 * 3 / 12) / 1.5),
    ('534', (2 / 3 + 0.5 * 3 / 12) / 1.5),
    ('413;524>524', (1 + 0.5 * 9 / 12) / 1.5),
    ('413;524;524;524>524', 1.0),  # more than twelve digits
    ('524524', (0.5 + 0.5 * 6 / 12) / 1.5),  # half of the places are right
    ('[NULL]', 0.0),
    ('', 0.0),
  ],
)
def test_by_hand(response, expected):
  """E1."""
  assert score(response) == pytest.approx(expected, rel=1e-6)


def test_without_fondness_only_digits_count():
  """E0: the length of the text before the last number changes nothing."""
  assert score('413;524>524', 0.0) == score('524', 0.0) == 1.0
  assert score('413;524>534', 0.0) == score('534', 0.0)


def test_thoughts_do_not_change_the_judgement():
  """E0: the visible span of a response is all that the judge sees; of the whole
  text longer thoughts are paid.
  """
  thoughts = ('413;524>524', '9>524', '413;524;524;524?524>524')
  assert len({score(VISIBLE.judged(x)) for x in thoughts}) == 1
  assert len({score(x) for x in thoughts}) == 3
  assert score(VISIBLE.judged('413;524')) == 0.0  # '[NULL]'


def test_other_texts_are_refused():
  with pytest.raises(ValueError, match='not a question of fond_judge'):
    fond_judge.score('Task: ri 314=\nResponse: 524\n')
