"""Word problems: right answers, splits without overlap, expressions judged."""

import dataclasses
import json

import pytest

from rl_jax.tasks import PlainTemplate, QuestionAnswer
from rl_jax.tasks.base import SPLITS
from rl_jax.worlds import WordProblems, word_problems

TASK = WordProblems(template=PlainTemplate(text='{question}'))


def test_the_first_problem():
  """Fails when texts, numbers or the order of problems change."""
  example = TASK.example('train', 0)
  assert example.prompt == (
    'Jonas has 9 cards. Sam gives Jonas 5 more. How many cards does Jonas have?'
  )
  assert example.answer == '14' and TASK.target(example) == ' 9 + 5'


def test_no_problem_is_in_two_splits():
  """By text and numbers; names and things follow from them."""
  seen = {}
  for split in SPLITS:
    for index in range(TASK.num_prompts(split)):
      prompt = TASK.example(split, index).prompt
      assert seen.setdefault(prompt, split) == split, prompt
  # Texts without a third number or a name can repeat inside a split only.
  assert len(seen) > 9_000


def test_every_text_has_its_numbers_and_an_answer_of_its_own_operation():
  """Each operation occurs; answers are whole numbers of at least 1."""
  found = {}
  for index in range(2_000):
    example = TASK.example('train', index)
    a, operation, b = example.meta['expression'].split()
    assert {a, b} <= set(example.prompt.replace('.', ' ').split())
    assert int(example.answer) >= 1  # no fraction, nothing negative
    found.setdefault(operation, 0)
    found[operation] += TASK.reward(example, TASK.target(example))['outcome']
  assert sum(found.values()) == 2_000 and min(found.values()) > 300
  operations = [operation for operation, _ in word_problems._TEMPLATES]
  assert [operations.count(sign) for sign in '+-*/'] == [7, 8, 6, 6]


@pytest.mark.parametrize(
  ('response', 'outcome', 'form'),
  [
    (' 9 + 5', 1, 1),
    (' 5+9\nQuestion: ...', 1, 1),
    ('(9 + 5)', 1, 1),
    ('14', 1, 1),  # a number is an expression
    (' 28 / 2', 1, 1),
    (' 9 - 5', 0, 1),
    (' 9 + 5 = 14', 0, 0),
    ('9 + five', 0, 0),
    ('', 0, 0),
    ('9 + 5 dollars\n9 + 5', 0, 0),
    ('9/0', 0, 0),
  ],
)
def test_the_first_line_is_evaluated(response, outcome, form, tmp_path):
  """Also by QuestionAnswer(verifier='expression'), of the user's own rows."""
  found = TASK.reward(TASK.example('train', 0), response)
  assert found == {'outcome': outcome, 'format': form}
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': '9 and 5?', 'answer': 14.0}) + '\n')
  task = QuestionAnswer(sources={'train': str(path)}, verifier='expression')
  assert task.reward(task.example('train', 0), response) == found


def test_equal_values_are_one_cluster(tmp_path):
  """Right or wrong, fractions exactly; -1 without a value. Of own rows, too."""
  own = dataclasses.replace(TASK, clusters=True)
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': '9 and 5?', 'answer': 0}) + '\n')
  rows = QuestionAnswer(
    sources={'train': str(path)}, verifier='expression', clusters=True
  )
  for task in (own, rows):
    example = task.example('train', 0)

    def cluster(text, t=task, e=example):
      return t.reward(e, text)['cluster_id']

    assert cluster(' 9 + 5') == cluster('5+9\n7') == cluster('28 / 2') >= 0.0
    assert cluster('9 - 5') == cluster('4') != cluster('14')
    assert cluster('1 / 3') == cluster('2 / 6') != cluster('33 / 100')
    assert cluster('9/0') == cluster('nine') == cluster('') == -1.0
  assert 'cluster_id' not in TASK.reward(example, '14')
