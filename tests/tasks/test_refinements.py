"""Prompts with a reference answer."""

import json

import pytest

from rl_jax.tasks import Example, Refinements, RulePairs
from rl_jax.worlds import Arithmetic

SUMS = Arithmetic(digits=2, operations='+', reverse=True)
PAIRS = RulePairs(SUMS)
SHOWN = Refinements(task=PAIRS, separator='=')


def written(path, responses):
  """A file of evaluate --out; its path."""
  path.write_text(json.dumps({'greedy': [0.0], 'responses': responses}))
  return str(path)


def test_the_rejected_response_is_shown_and_the_chosen_one_learned():
  for index in range(20):
    plain, example = (
      PAIRS.example('train', index),
      SHOWN.example('train', index),
    )
    chosen, rejected = PAIRS.recorded(plain)
    assert example.prompt == f'{plain.prompt}{rejected.text}='
    assert example.meta == {
      'question': plain.prompt,
      'reference': rejected.text,
    }
    assert SHOWN.recorded(example) == (chosen,)
    assert SHOWN.target(example) == SUMS.target(plain) == chosen.text
    assert SHOWN.num_recorded == 1


def test_rewards_are_those_of_the_task():
  """E0: whatever is shown, and of whatever index."""
  task = Refinements(task=PAIRS, separator='=', shown='data')
  for index in range(20):
    plain, example = PAIRS.example('train', index), task.example('train', index)
    for response in (plain.answer, example.meta['reference'], ''):
      assert task.reward(example, response) == SUMS.reward(plain, response)


def test_data_shows_either_response():
  """Both in about half of the prompts, by the prompt only."""
  task = Refinements(task=PAIRS, separator='=', shown='data')
  examples = [task.example('train', i) for i in range(200)]
  assert examples == [task.example('train', i) for i in range(200)]
  right = sum(e.meta['reference'] == e.answer for e in examples)
  assert 70 < right < 130


def test_answers_of_a_policy_by_hand(tmp_path):
  """The i-th response belongs to prompt i; other splits are empty."""
  path = written(tmp_path / 'a.jsonl', ['7', '', '12'])
  task = Refinements(task=PAIRS, separator='#', references={'test': path})
  assert [task.num_prompts(s) for s in ('train', 'test')] == [0, 3]
  for index, text in enumerate(('7', '', '12')):
    prompt = SUMS.example('test', index).prompt
    assert task.example('test', index).prompt == f'{prompt}{text}#'
  with pytest.raises(IndexError, match='Refinements: index 3'):
    task.example('test', 3)


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"responses": [1]}'])
def test_another_file_is_named(text, tmp_path):
  path = tmp_path / 'other.jsonl'
  path.write_text(text)
  task = Refinements(task=PAIRS, references={'train': str(path)})
  with pytest.raises(ValueError, match='references: .*l is not a file'):
    task.num_prompts('train')


def test_wrong_fields_are_named():
  with pytest.raises(ValueError, match='Refinements.shown'):
    Refinements(task=PAIRS, shown='chosen')
  with pytest.raises(ValueError, match="split 'dev' is none of"):
    Refinements(task=PAIRS, references={'dev': 'a.jsonl'})
  with pytest.raises(ValueError, match='data of Arithmetic have 1'):
    Refinements(task=SUMS)


def test_prompts_that_are_no_texts_are_refused():
  class Begun(RulePairs):
    def example(self, split, index):
      return Example(prompt='1+1=', answer='2', id=index, prefill='=')

  with pytest.raises(ValueError, match='Refinements.task: Begun'):
    Refinements(task=Begun(SUMS)).example('train', 0)
