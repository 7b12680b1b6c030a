"""Prompts as padded arrays, and what is refused at start-up."""

import dataclasses

import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.rollouts import prompts as prompts_lib
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.tasks.base import Example, Task

TOKENIZER = CharTokenizer('abc')


@dataclasses.dataclass(frozen=True)
class Fixed(Task):
  """Prompts given one by one; the same in every split but test."""

  prompts: tuple[str, ...] = ('a', 'abcab', 'abc')

  def num_prompts(self, split):
    """None for test."""
    return 0 if split == 'test' else len(self.prompts)

  def example(self, split, index):
    """The index-th one."""
    return Example(prompt=self.prompts[index], answer='', id=index)

  def reward(self, example, response):
    """Nothing is judged."""
    return {'outcome': 0.0}


def prompt_set(limit=8, overlong='error', split='train', **task):
  """A PromptSet of that task."""
  return PromptSet(Fixed(**task), split, TOKENIZER, limit, overlong)


def test_prompts_are_left_padded_to_a_power_of_two():
  """3 tokens make width 4, 5 make 8; few widths are ever compiled."""
  examples, prompt, mask, ids = prompt_set().batch([2, 0])
  abc = TOKENIZER.encode('abc')
  pad = TOKENIZER.pad_id
  np.testing.assert_array_equal(prompt, [[pad, *abc], [pad, pad, pad, abc[0]]])
  np.testing.assert_array_equal(mask, [[0, 1, 1, 1], [0, 0, 0, 1]])
  assert ids.tolist() == [2, 0] and [e.id for e in examples] == [2, 0]
  assert prompt_set().batch([1])[1].shape == (1, 8)
  assert prompt_set(limit=5).batch([1])[1].shape == (1, 5)  # never wider
  assert prompt_set().batch([0])[1].shape == (1, 1)


def test_an_overlong_prompt_is_named():
  """Task, split, row, both lengths, and the way out."""
  with pytest.raises(OverlongPromptError) as error:
    prompt_set(limit=4)
  for part in ('Fixed train[1]', '5 tokens', '= 4', "overlong_prompt='skip'"):
    assert part in str(error.value)


def test_all_overlong_prompts_are_counted_at_once():
  """So that one change of the limit is enough."""
  with pytest.raises(OverlongPromptError) as error:
    prompt_set(limit=2, prompts=('a', 'abcab', 'abc', 'ab', 'abca'))
  text = str(error.value)
  assert 'Fixed train[1]: the prompt has 5 tokens' in text
  assert text.endswith('of 5 prompts 3 are too long, the longest has 5 tokens')


def test_overlong_prompts_can_be_skipped(caplog):
  """The others keep their own ids, and the number skipped is said."""
  prompts = prompt_set(limit=4, overlong='skip')
  assert len(prompts) == 2
  assert prompts.batch([0, 1])[3].tolist() == [0, 2]
  assert 'skipped 1 of 3' in caplog.text


@pytest.mark.parametrize('mode', ['error', 'skip'])
@pytest.mark.parametrize('bad', ['abcab', '', 'z'])
def test_a_bad_row_of_a_large_split_that_is_drawn_late(
  monkeypatch, caplog, mode, bad
):
  """Rows 0 and 2 are checked at start; row 2 takes the place of row 1."""
  monkeypatch.setattr(prompts_lib, 'SCAN_LIMIT', 2)
  monkeypatch.setattr(prompts_lib, 'SPOT_CHECKS', 2)
  prompts = prompt_set(limit=4, overlong=mode, prompts=('a', bad, 'abc'))
  for _ in range(3):
    examples, _, _, ids = prompts.batch([0, 1, 2])
    assert [e.prompt for e in examples] == ['a', 'abc', 'abc']
    assert ids.tolist() == [0, 2, 2]
  assert 'Fixed train[1]' in caplog.text or bad == 'z'
  assert len(caplog.records) == 1  # said once, then counted


def test_large_splits_are_spot_checked(monkeypatch, caplog):
  """Overlong rows found at start are errors, or counted and never drawn."""
  monkeypatch.setattr(prompts_lib, 'SCAN_LIMIT', 2)
  with pytest.raises(OverlongPromptError):
    prompt_set(limit=4)
  prompts = prompt_set(limit=4, overlong='skip')
  assert 'skipped 1 of 3' in caplog.text
  assert set(prompts.batch([0, 1, 2])[3].tolist()) == {0, 2}
  with pytest.raises(ValueError, match='no prompt of split'):
    prompt_set(limit=2, overlong='skip', prompts=('abc', 'abca', 'cab'))


def test_nothing_to_draw_from_is_an_error():
  """No rows, only overlong rows, an empty prompt."""
  with pytest.raises(ValueError, match="Fixed: split 'test' is .*num_valid"):
    prompt_set(split='test')
  with pytest.raises(ValueError, match="no prompt of split 'train' has at m"):
    prompt_set(limit=2, overlong='skip', prompts=('abc', 'abca'))
  with pytest.raises(ValueError, match=r'Fixed train\[1\]: .* empty'):
    prompt_set(prompts=('a', ''))
