"""Test sets of published tables: their counts, columns and right answers."""

import json

import pytest

from rl_jax.serialization import from_json, to_json
from rl_jax.tasks.suites import OPTIONS, SUITES, suite

# A row of each file, with a wrong and a right response.
ROWS = {
  'aime24': ({'problem': 'P', 'answer': '073'}, r'\boxed{37}', r'\boxed{73}'),
  'aime25': ({'problem': 'P', 'answer': 70}, r'\boxed{7}', r'\boxed{70}'),
  'amc23': ({'problem': 'P', 'answer': 142.0}, r'\boxed{14}', r'\boxed{142}'),
  'gsm8k': (
    {'question': 'P', 'answer': 'so\n#### 1,018'},
    'it is 1,0180',
    'it is 1018.',
  ),
  'math500': (
    {'problem': 'P', 'answer': r'\frac{1}{2}'},
    r'\boxed{\frac{1}{3}}',
    r'\boxed{\frac{1}{2}}',
  ),
  'minerva': (
    {'problem': 'P', 'solution': r'so \boxed{4.5e33}'},
    r'\boxed{4.5e34}',
    r'\boxed{4.5e33}',
  ),
  'omni_math_rule': (
    {'problem': 'P', 'answer': r'80 + 40\sqrt{3}'},
    r'\boxed{80}',
    r'\boxed{40\sqrt{3} + 80}',
  ),
  'olympiadbench': (
    {'question': 'P', 'final_answer': ['$2$', '$3$']},
    r'\boxed{2,3}',
    r'\boxed{3}',
  ),
}

CHOICES = {
  'gpqa_diamond': (
    {
      'Question': 'Sky?',
      'Correct Answer': 'blue',
      'Incorrect Answer 1': 'red',
      'Incorrect Answer 2': 'green',
      'Incorrect Answer 3': 'grey',
      'Subdomain': '-',
    },
    'Answer: {}',
  ),
  'mmlu_pro': (
    {
      'question': 'Sky?',
      'options': ['red', 'blue', 'green'],
      'answer': 'B',
      'answer_index': 1,
    },
    'so the answer is ({}).',
  ),
}


def write(path, row, count):
  path.write_text((json.dumps(row) + '\n') * count)
  return str(path)


@pytest.mark.parametrize('name', sorted(SUITES))
def test_rows_are_read_and_judged(tmp_path, name):
  row, wrong, right = ROWS[name]
  count = SUITES[name].rows[0]
  task = suite(name, write(tmp_path / 'test.jsonl', row, count))
  assert task.num_prompts('test') == count and not task.num_prompts('train')
  example = task.example('test', count - 1)
  assert task.reward(example, wrong)['outcome'] == 0.0
  assert task.reward(example, right)['outcome'] == 1.0
  assert from_json(to_json(task)) == task


@pytest.mark.parametrize('name', sorted(OPTIONS))
def test_suites_with_options(tmp_path, name):
  """Prompts show all options; the letter of the right one is right."""
  row, form = CHOICES[name]
  count = OPTIONS[name]['rows']
  task = suite(name, write(tmp_path / 'test.jsonl', row, count))
  assert task.num_prompts('test') == count
  letters, mark = set(), task.listing[len('{letter}')]
  for index in (*range(20), count - 1):
    example = task.example('test', index)
    found = task.scored_options(example)
    for letter, option in zip('ABCD', found, strict=False):
      assert option.right == (option.text == 'blue')
      assert f'\n{letter}{mark} {option.text}\n' in example.prompt
      outcome = task.reward(example, form.format(letter))['outcome']
      assert outcome == float(option.right)
      letters |= {letter} if option.right else set()
  assert letters == ({*'ABCD'} if name == 'gpqa_diamond' else {'B'})
  assert from_json(to_json(task)) == task


def test_another_count_is_an_error(tmp_path):
  row, _, _ = ROWS['amc23']
  path = write(tmp_path / 'test.jsonl', row, 83)
  with pytest.raises(
    ValueError, match=r"test.jsonl has 83 usable rows.*num_rows\['test'\] = 40"
  ):
    suite('amc23', path).num_prompts('test')
  assert suite('amc23', path, rows=83).num_prompts('test') == 83


def test_what_is_missing_is_named(tmp_path):
  path = write(tmp_path / 'test.jsonl', {'question': 'P', 'answer': '1'}, 30)
  with pytest.raises(
    ValueError,
    match=r"test.jsonl:1: field 'problem' is missing; present: \['answer', 'qu",
  ):
    suite('aime24', path).num_prompts('test')
  task = suite('aime24', path, question='{question}')
  assert task.num_prompts('test') == 30
  with pytest.raises(FileNotFoundError, match='no such data file: /gone.jsonl'):
    suite('aime24', '/gone.jsonl').num_prompts('test')
  with pytest.raises(ValueError, match='none of aime24, aime25'):
    suite('aime2024', path)
