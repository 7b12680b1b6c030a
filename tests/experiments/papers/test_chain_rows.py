"""Rows of samples of FamilyChains: pairs, labels, critiques."""

import pytest

from experiments.papers.worlds import chain_rows
from rl_jax.worlds import family_chains

ASKED = 'ri 314='  # 413;524>524
GOOD = '413;524?524>524'
FAULTS = {
  '': GOOD,
  'brief': '413;524>524',
  'wrong': '413;534?534>534',
  'inconsistent': '413;534?534>524',
  'repeats': '413;524;524?524>524',
}


def log(*responses, step=1, prompt=ASKED):
  return [
    {'step': step, 'prompt': prompt, 'response': x, 'error': None}
    for x in responses
  ]


@pytest.mark.parametrize('reason', FAULTS)
def test_faults_by_hand(reason):
  assert chain_rows.fault(ASKED, FAULTS[reason]) == reason


def test_pairs_have_one_for_each_reason():
  """Brief responses are neither chosen nor rejected; the first ones count."""
  pairs = list(chain_rows.verified(log(*FAULTS.values(), '', GOOD)))
  assert [x['rejected'] for x in pairs] == [
    FAULTS[name] for name in ('wrong', 'inconsistent', 'repeats')
  ]
  assert {x['chosen'] for x in pairs} == {GOOD}


def test_groups_without_a_good_or_a_bad_sample_have_no_pair():
  """Then DPO has no rows, and pairs of other iterations do not mix."""
  assert not list(chain_rows.verified(log(GOOD, FAULTS['brief'])))
  assert not list(chain_rows.verified(log(FAULTS['wrong'], FAULTS['brief'])))
  apart = log(GOOD) + log(FAULTS['wrong'], step=2)
  assert not list(chain_rows.verified(apart))


def test_samples_that_a_limit_has_cut_are_left_out():
  """With an end token they would be longer than any response may be."""
  done, cut, failed = (
    {'error': error, 'ended_by': end}
    for error, end in ((None, ''), (None, None), ('timeout', ''))
  )
  assert chain_rows.finished([cut, done, failed]) == [done]


def test_labels_by_hand():
  (row,) = chain_rows.step_rows(log('413;534?524>524', ''))
  assert row == {
    'prompt': ASKED,
    'completions': ['413;', '534?', '524>', '524'],
    'labels': [1.0, 0.0, 1.0, 1.0],
  }


def test_bench_by_hand():
  """The first wrong part; the answer may be right after a wrong step."""
  first, last = chain_rows.bench(log('413;534?524>524', '413;524>524'))
  assert (first['label'], first['final_answer_correct']) == (1, True)
  assert first['steps'] == ['413;', '534?', '524>', '524']
  assert (last['label'], last['final_answer_correct']) == (-1, True)


def test_critiques_by_hand():
  """Without errors they are the verdicts; with certain ones all are turned."""
  (row,) = chain_rows.critiques(log('413;534>524'), 0.0)
  assert row == {'prompt': 'ri 314=413;534>524#', 'completion': '101 2/3'}
  (row,) = chain_rows.critiques(log('413;534>524'), 1.0)
  assert row['completion'] == '010 1/3'


@pytest.mark.parametrize(
  'response, written, kept',
  [
    ('413;524>524', '111 3/3', True),
    ('413;524>524', '101 2/3', False),  # the answer is right
    ('413;534>534', '100 1/3', True),
    ('413;534>534', '000 0/3', True),  # wrong in a step, right in the end
    ('413;534>534', '111 3/3', False),
    ('413;534>534', '10 1/2', False),  # of three parts
    ('413;534>534', '100 2/3', False),
    ('413;534>534', '100', False),
  ],
)
def test_critiques_that_agree_with_the_outcome(response, written, kept):
  asked = family_chains.QUESTION.format(prompt=ASKED, response=response)
  found = list(chain_rows.agreed(log(written, prompt=asked)))
  assert bool(found) == kept


def test_labelled_samples_stay():
  """Equal ones, too; a file of responses has no empty one."""
  found = list(chain_rows.labelled(log('413;524>524', '413;524>525', '') * 2))
  assert [row['label'] for row in found] == [True, False] * 2
