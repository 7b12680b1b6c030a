"""Made-up responses, reasons for differences, and the committed results."""

import json
import re

import pytest

from experiments.papers import grading, made_up, reasons, released_graders
from rl_jax.tasks import QuestionAnswer


def forms(right, wrong='4', style='boxed'):
  return dict(made_up.responses(right, wrong, style))


@pytest.mark.parametrize('style', made_up.MARKS)
def test_forms_have_names_of_their_own(style):
  found = list(made_up.responses('1234', '4', style))
  names = [form for form, _ in found]
  assert len(set(names)) == len(names) > 30
  assert made_up.MARKS[style].format('1234') in dict(found)['right']


def test_integers_and_fractions_have_further_forms():
  """A thousand has separators, 3/2 a decimal and a mixed number, 1/3 none."""
  assert r'{12{,}345}' in forms('12345')['thousands by {,}']
  assert 'thousands by commas' not in forms('345')
  fraction = forms(r'\frac{3}{2}')
  assert r'\boxed{1.5}' in fraction['decimal']
  assert r'\boxed{1\frac{1}{2}}' in fraction['mixed number']
  assert r'\boxed{\frac{6}{4}}' in fraction['not reduced']
  assert 'decimal' not in forms(r'\frac{1}{3}')


def test_torn_responses_end_before_the_mark_is_closed():
  found = forms('1234')
  assert found['torn in the answer'].endswith(r'\boxed{123')
  assert found['torn after the answer'].endswith(r'\boxed{1234')
  assert found['torn before the answer'].endswith(r'\boxed{')


def test_our_graders_accept_the_right_form_and_no_wrong_one(tmp_path):
  """Every comparison's own grader on one integer."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'How many?', 'answer': '7'}) + '\n')
  wrong = ('wrong', 'one more', 'negated', 'torn before the answer', 'nothing')
  for comparison in grading.COMPARISONS:
    task = grading.ours(comparison, str(path))
    example = task.example('test', 0)
    found = forms('7', style=comparison.style)
    assert task.reward(example, found['right'])['outcome'] == 1.0, comparison
    for form in wrong:
      assert task.reward(example, found[form])['outcome'] == 0.0, (
        comparison.released,
        form,
      )


def test_a_right_answer_that_is_not_accepted_is_listed(tmp_path):
  """A right answer without its closing brace cannot be marked."""
  path = tmp_path / 'rows.jsonl'
  rows = [{'question': 'a', 'answer': '7'}, {'question': 'b', 'answer': 'x_{0'}]
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = QuestionAnswer(sources={'test': 'x'}, extract='boxed', verifier='math')
  assert grading.golds_accepted(task, str(path)) == (2, 0, ['x_{0'])


def test_released_code_is_found_by_name():
  """A comparison names a released grader; an unknown one is an error there."""
  for comparison in grading.COMPARISONS:
    assert comparison.released in released_graders.GRADERS
    assert set(comparison.sources) <= set(grading.sources())
  line = {'grader': 'none', 'text': '', 'golds': ['1']}
  assert released_graders.grade(line) == {'error': "KeyError: 'none'"}


def test_a_difference_without_a_rule_has_no_reason():
  assert reasons.why('oat', 'right', 'released') == reasons.UNEXPLAINED
  assert reasons.why('oat', 'sum', 'released') != reasons.UNEXPLAINED
  assert reasons.why('oat', 'sum', 'ours') == reasons.UNEXPLAINED
  for rule in reasons.RULES:
    assert rule.only in ('ours', 'released')
    assert rule.graders <= set(released_graders.GRADERS)


def test_committed_results_hold_the_bar():
  """At least 99.5% of responses agree, or differ for a reason that is given."""
  found = grading.results()
  known = {one.released for one in grading.COMPARISONS}
  assert {line['released'] for line in found['comparisons']} == known
  for line in found['comparisons']:
    unexplained = sum(
      count
      for reason, count in line['differences'].items()
      if reason.startswith(reasons.UNEXPLAINED)
    )
    assert line['responses'] > 0
    assert unexplained <= 0.005 * line['responses'], line['released']
  for line in found['golds']:
    if not line.get('missing'):
      assert line['golds'] > 0
      # Some of this set are torn, or sentences with a box.
      assert not line['refused'] or line['file'] == 'omni_math_rule'
    assert re.fullmatch(r'(hf|git):\S+ @ \S+', line['from'])
