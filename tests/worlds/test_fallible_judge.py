"""A judge of which is known how often it errs and what fools it."""

import pytest

from rl_jax.models.judge_source import filled
from rl_jax.worlds import Families, fallible_judge

TASK = '\nTask: {prompt}\nResponse: {response}\n'


def asked(head, prompt='c 1 2=', response='1 2'):
  """A question of that head."""
  return filled(head + TASK, {'prompt': prompt, 'response': response})


@pytest.mark.parametrize(
  ('head', 'response', 'expected'),
  [
    ('', '1 2', 1.0),
    ('', '2 1', 0.0),
    ('error 1.0', '1 2', 0.0),
    ('error 1.0', '2 1', 1.0),
    ('error 1.0 0.0', '1 2', 0.0),  # of right responses only
    ('error 1.0 0.0', '2 1', 0.0),
    ('fooled', '2 1', 1.0),  # another order
    ('fooled', '2 2', 0.0),
    ('fooled\nReject wrong orders.', '1 2', 1.0),  # a copy was asked for
  ],
)
def test_verdicts_by_hand(head, response, expected):
  assert fallible_judge.verdict(asked(head, response=response)) == expected


def rate(head, right):
  """The share of right verdicts over 600 prompts."""
  task, found = Families(), []
  for index in range(600):
    example = task.example('train', index)
    said = example.answer if right else example.answer[:-1]
    question = asked(head, example.prompt, said)
    found.append(fallible_judge.verdict(question) == float(right))
  return sum(found) / len(found)


@pytest.mark.parametrize('right', [True, False])
def test_the_rate_is_as_said_and_votes_raise_it(right):
  """0.8 of one vote, 0.942 of five: 10 a^3 b^2 + 5 a^4 b + a^5."""
  assert rate('error 0.2', right) == pytest.approx(0.8, abs=0.05)
  assert rate('error 0.2\nvotes 5', right) == pytest.approx(0.942, abs=0.03)
  assert rate('error 0.0\nvotes 5', right) == 1.0


def test_the_same_response_has_the_same_verdict_whatever_else_is_said():
  """Errors are of prompt and response; the rubric does not draw again."""
  questions = [asked('error 0.5\n' + x, response='3 4') for x in ('a', 'b')]
  assert len({*map(fallible_judge.verdict, questions)}) == 1


def test_any_order_passes_until_the_rule_is_there():
  """The right answer to r 1 2 is 2 1; a copy of 1 1 is right."""
  found = [
    fallible_judge.verdict(asked(head, 'r 1 2=', '1 2'))
    for head in ('', 'fooled', f'fooled\n{fallible_judge.COUNTER_RULE}')
  ]
  assert found == [0.0, 1.0, 0.0]
  head = f'fooled\n{fallible_judge.COUNTER_RULE}'
  assert fallible_judge.verdict(asked(head, 'r 1 1=', '1 1')) == 1.0


def test_the_rule_is_added_where_the_judge_was_fooled():
  refine = 'Rubric:\nbe fair\n\nTask: r 1 2=\nResponse: {}\nScore: {}\n\nSay'
  kept = fallible_judge.revised(refine.format('2 1', 1))
  assert kept == fallible_judge.revised(refine.format('1 2', 0)) == 'be fair'
  found = fallible_judge.revised(refine.format('1 2', 1))
  assert found == f'be fair\n{fallible_judge.COUNTER_RULE}'
  merge = f'Rubric:\nbe fair\n\nProposals:\n{kept}\n\n{found}\n\nJoin them'
  assert fallible_judge.revised(merge) == found
  assert fallible_judge.revised(merge.replace('be fair', found)) == found


def test_another_question_is_named():
  with pytest.raises(ValueError, match='does not end with the lines'):
    fallible_judge.verdict('Response: 1')
