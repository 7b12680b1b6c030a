"""Rows of data from logged samples."""

import functools
import json
import subprocess
import sys

import pytest

from experiments.pipelines.rows import read, rows
from rl_jax.tasks import PreferenceRows


def sample(step, prompt, response, reward, error=None):
  """A line of rollouts.jsonl."""
  fields = {'step': step, 'prompt': prompt, 'response': response}
  return {**fields, 'reward': reward, 'error': error}


LINES = [
  sample(1, 'p', 'bad', 0.0),
  sample(1, 'p', 'good', 1.0),
  sample(1, 'p', 'also', 1.0),
  sample(1, 'q', 'bad', 0.0),
  sample(2, 'p', 'worse', 0.0),
  sample(2, 'p', '', 1.0),
  sample(2, 'q', 'half', 0.5),
  sample(2, 'q', 'none', float('nan'), 'timeout'),
  sample(2, 'q', 'low', 0.25),
]


@pytest.mark.parametrize(
  'form, least, expected',
  [
    ('pair', 1.0, [('p', 'good', 'bad')]),
    ('pair', 0.5, [('p', 'good', 'bad'), ('q', 'half', 'low')]),
    ('response', 1.0, [('p', 'good'), ('p', 'also')]),
    ('response', 0.3, [('p', 'good'), ('p', 'also'), ('q', 'half')]),
    ('text', 1.0, [('pgood',), ('palso',)]),
    (
      'scores',  # not of a prompt with a failed call or a cut response
      1.0,
      [('p', ['bad', 'good', 'also'], [0.0, 1.0, 1.0])],
    ),
    (
      'label',
      0.5,
      [('p', text, text != 'bad') for text in ('bad', 'good', 'also')]
      + [('q', 'bad', False), ('p', 'worse', False)]
      + [('q', 'half', True), ('q', 'low', False)],
    ),
  ],
)
def test_rows_by_hand(form, least, expected):
  """Samples of one iteration only are compared; a failed call is not a
  sample.
  """
  found = rows(LINES, form, least, chat=False)
  assert [tuple(row.values()) for row in found] == expected


def test_rows_that_wait_for_their_group_are_no_samples():
  """Windows log them again, without a reward, which NaN is."""
  waiting = [*LINES, sample(2, 'p', 'good', float('nan'))]
  for form in ('label', 'scores', 'pair', 'response'):
    found = list(rows(waiting, form, 1.0, chat=False))
    assert [x for x in found if x.get('completion') == 'good'] == [
      x
      for x in rows(LINES, form, 1.0, chat=False)
      if x.get('completion') == 'good'
    ]
    assert 'NaN' not in json.dumps(found)


def test_shorter_and_right_beats_longer_and_wrong():
  """The shortest right sample against the longest wrong one, or no pair."""
  texts = {'long': 0.0, 'bad': 0.0, 'right': 1.0, 'ok': 1.0}
  lines = [sample(1, 'p', text, reward) for text, reward in texts.items()]
  lines += [
    sample(1, 'q', text, reward) for text, reward in (('no', 0), ('yes', 1))
  ]
  found = list(rows(lines, 'pair', 1.0, False, shorter=True))
  assert found == [{'prompt': 'p', 'chosen': 'ok', 'rejected': 'long'}]
  assert len(list(rows(lines, 'pair', 1.0, False))) == 2


def test_responses_have_what_ended_them():
  """A stop text is part of what was sampled; a response that was cut is not."""
  lines = [
    sample(1, 'p', '3', 1.0) | {'ended_by': '\n'},
    sample(1, 'p', '4', 0.0) | {'ended_by': ''},
    sample(1, 'p', '5', -1.0) | {'ended_by': None},
  ]
  (pair,) = rows(lines, 'pair', 1.0, chat=False)
  assert pair == {'prompt': 'p', 'chosen': '3\n', 'rejected': '4'}


def test_episodes_of_several_turns_are_refused():
  """Their text has the answers of the environment; of one turn it has none."""
  turn = {'observation': '?', 'action': 'a'}
  (one,) = LINES[1:2]
  for form in ('pair', 'label', 'scores', 'response', 'text'):
    samples = [LINES[0], {**one, 'turns': [turn]}]
    assert list(rows(samples, form, 1.0, False)) == list(
      rows(LINES[:2], form, 1.0, False)
    )
    with pytest.raises(ValueError, match='iteration 1 has an episode of 2'):
      list(rows([LINES[0], {**one, 'turns': [turn] * 2}], form, 1.0, False))
    with pytest.raises(ValueError, match='an episode of recorded turns'):
      list(rows([LINES[0], {**one, 'told': True}], form, 1.0, False))


def test_a_line_that_is_no_sample_is_named(tmp_path):
  (tmp_path / 'rollouts.jsonl').write_text('{"step": 1}\n[]\n')
  with pytest.raises(ValueError, match=r'rollouts.jsonl:1 lacks one of'):
    read(str(tmp_path), None)


def test_the_order_of_samples_without_ties_changes_nothing():
  """E0."""
  own = [line for line in LINES if line['response'] != 'also']

  def groups(lines):
    return list(rows(lines, 'pair', 0.5, False))

  assert groups(own) == groups(
    sorted(own, key=lambda x: (x['step'], x['prompt'], x['response']))
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'form, chat', [('pair', True), ('response', True), ('text', False)]
)
def test_files_are_read_as_data(form, chat, tmp_path):
  """Each row once; --last leaves out earlier iterations."""
  lines = [*LINES[:3], *LINES[:7], *LINES[:3]]
  lines = ''.join(json.dumps(line) + '\n' for line in lines)
  (tmp_path / 'rollouts.jsonl').write_text(lines)
  out = tmp_path / 'rows.jsonl'
  command = [sys.executable, '-m', 'experiments.rollout_rows']
  command += [f'--workdir={tmp_path}', f'--out={out}', f'--form={form}']
  run = functools.partial(subprocess.run, capture_output=True, text=True)
  assert run([*command, f'--chat={str(chat).lower()}']).returncode == 0
  task = PreferenceRows(path=str(out))
  assert task.num_prompts('train') == (1 if form == 'pair' else 2)
  example = task.example('train', 0)
  assert example.prompt == 'p' and bool(example.messages) == chat
  found = run([*command, '--min_reward=2'])
  assert found.returncode and 'no rows of --form' in found.stderr
  (tmp_path / 'rollouts.jsonl').write_text(lines + '{"step": 3}\n')
  found = run(command)
  assert found.returncode == 2 and 'rollouts.jsonl:14 lacks' in found.stderr
