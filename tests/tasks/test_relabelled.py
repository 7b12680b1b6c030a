"""Problems in other symbols."""

import pytest

from rl_jax.tasks import Example, Relabelled
from rl_jax.worlds import Arithmetic

SUMS = Arithmetic(digits=2, operations='+', reverse=True)
LETTERS = 'abcdefghij'
OTHER = Relabelled(SUMS, letters=LETTERS, tag='B')


def test_a_sum_by_hand():
  """12 + 99 = 111, read from the right: 'bc+jj=', 'bbb'."""
  inner = Example(prompt='12+99=', answer='111', id=0)
  task = Relabelled(SUMS, letters='bcdefghija', tag='C')
  other = Example(prompt='Ccd+aa=', answer='ccc', id=0)
  assert task.target(other) == 'ccc'
  assert task.reward(other, 'ccc') == SUMS.reward(inner, '111')
  for wrong in ('111', 'bbb', 'cc', 'cccc', ''):
    assert task.reward(other, wrong) == {'outcome': 0.0}


def test_translation_keeps_the_problem():
  """Index by index, with the tag in front and no symbol left."""
  for index in range(20):
    plain, other = SUMS.example('test', index), OTHER.example('test', index)
    assert other.prompt[0] == 'B' and other.id == plain.id
    assert not set('0123456789') & set(other.prompt + other.answer)
    digits = str.maketrans(LETTERS, '0123456789')
    assert other.prompt[1:].translate(digits) == plain.prompt
    assert OTHER.target(other).translate(digits) == SUMS.target(plain)
    assert set(other.prompt + other.answer) <= set(OTHER.alphabet)
    assert OTHER.reward(other, OTHER.target(other)) == {'outcome': 1.0}


def test_digits_of_another_order_are_another_language():
  """E0: a permutation of the symbols; the plain answer is wrong."""
  task = Relabelled(SUMS, letters='1234567890')
  example = task.example('train', 5)
  plain = SUMS.example('train', 5)
  assert task.reward(example, task.target(example)) == {'outcome': 1.0}
  assert task.reward(example, plain.answer) == {'outcome': 0.0}


def test_the_identity_is_the_task():
  """E0."""
  task = Relabelled(SUMS)
  assert set(task.alphabet) == set(SUMS.alphabet)
  for split in ('train', 'validation'):
    assert task.num_prompts(split) == SUMS.num_prompts(split)
    example = SUMS.example(split, 7)
    assert task.example(split, 7) == example
    for response in (example.answer, '0', ''):
      assert task.reward(example, response) == SUMS.reward(example, response)


def test_errors_of_the_translator():
  """Rate 1 mistakes every symbol, 1/2 both ways, and always in the same way."""
  right = {}
  for error in (0.0, 0.5, 1.0):
    task = Relabelled(SUMS, letters=LETTERS, tag='B', error=error)
    examples = [task.example('train', i) for i in range(200)]
    found = [task.reward(e, e.answer)['outcome'] for e in examples]
    assert found == [task.reward(e, e.answer)['outcome'] for e in examples]
    right[error] = sum(found) / len(found)
  assert right[0.0] == 1.0 and right[1.0] == 0.0
  assert 0.1 < right[0.5] < 0.3  # answers have two symbols or three


@pytest.mark.parametrize(
  'fields, message',
  [
    ({'letters': 'abc'}, "letters = 'abc': expected as many"),
    ({'letters': 'aacdefghij'}, "letters = 'aacdefghij': .* each once"),
    ({'symbols': ''}, "symbols = '': expected characters"),
    ({'error': 2.0}, r'Relabelled.error = 2.0'),
    ({'symbols': '1', 'letters': 'a', 'error': 0.5}, 'one symbol'),
  ],
)
def test_wrong_fields_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    Relabelled(SUMS, **fields)


def test_prompts_that_are_no_texts_are_refused():
  class Talks(Arithmetic):
    def example(self, split, index):
      turn = {'role': 'user', 'content': '1+1='}
      return Example(prompt='', answer='2', id=index, messages=(turn,))

  with pytest.raises(ValueError, match='Relabelled.task: Talks'):
    Relabelled(Talks()).example('train', 0)
