"""Queries with the text of their rules, and without it."""

import pytest

from rl_jax.worlds import RuleTexts

TASK = RuleTexts()


def test_the_text_answers_by_hand():
  """Every digit has one letter; the answer has those of the query."""
  example = TASK.example('validation', 0)
  hinted = TASK.hinted(example)
  text, query = hinted.prompt.split('|')
  rules = dict(zip(text[::2], text[1::2], strict=True))
  assert query == example.prompt and sorted(rules) == list('01234567')
  assert example.answer == rules[query[0]] + rules[query[1]]
  assert set(hinted.prompt) <= set(TASK.alphabet)
  assert TASK.reward(example, example.answer) == {'outcome': 1.0}
  assert TASK.reward(example, '') == {'outcome': 0.0}
  assert len(hinted.prompt) == 20


def test_a_text_of_few_keys():
  """Texts and queries have the first digits only."""
  task = RuleTexts(keys=4)
  hinted = [task.hinted(task.example('train', n)) for n in range(40)]
  assert {len(x.prompt) for x in hinted} == {12}
  assert set(''.join(x.prompt for x in hinted)) & set('01234567') == set('0123')
  with pytest.raises(ValueError, match='keys = 9'):
    RuleTexts(keys=9)


def test_one_text_holds_for_all_prompts():
  rules = [TASK.example(split, 5).meta['rules'] for split in ('train', 'test')]
  assert rules[0] == rules[1] == TASK.rules()


def test_others_have_their_own_rules_in_training_only():
  """Held-out prompts keep the one text, and never show it."""
  task = RuleTexts(others=True, shown=0.5)
  texts = {str(task.example('train', n).meta['rules']) for n in range(20)}
  assert len(texts) == 20
  assert task.example('test', 3) == TASK.example('test', 3)
  shown = ['|' in task.example('train', n).prompt for n in range(200)]
  assert 70 < sum(shown) < 130


def test_a_form_for_the_likelihood_of_the_text():
  """The response has the text, the query and the answer."""
  plain = TASK.example('train', 2)
  example = RuleTexts(form='text').example('train', 2)
  assert example.prompt == '>'
  assert example.answer == TASK.hinted(plain).prompt + plain.answer
  assert len(example.answer) == 22


def test_without_texts_nothing_is_shown():
  assert all('|' not in TASK.example('train', n).prompt for n in range(50))
  with pytest.raises(ValueError, match='shown = 2'):
    RuleTexts(shown=2.0)
