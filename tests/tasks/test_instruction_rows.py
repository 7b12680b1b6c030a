"""Rows of IFEval as a task: prompts, accuracies, bad rows."""

import dataclasses
import json
import sys

import numpy as np
import pytest

from rl_jax.runs import evaluation
from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import InstructionRows, PlainTemplate
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.suites import suite

ROW = {
  'key': 1,
  'prompt': 'Write of dogs.',
  'instruction_id_list': ['punctuation:no_comma', 'startend:quotation'],
  'kwargs': [{}, {'num_words': None}],
}


def task_of(folder, *rows, **fields):
  """A task on these rows, as its test split."""
  path = folder / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  given = {'detector': 'scripts', **fields}
  return InstructionRows(sources={'test': str(path)}, **given)


@pytest.mark.parametrize(
  ('response', 'strict', 'loose'),
  [
    ('"Dogs bark."', (1, 2), (1, 2)),
    ('Dogs bark.', (0, 1), (0, 1)),
    ('Sure, here:\n"Dogs bark."', (0, 0), (1, 2)),
    ('*"Dogs bark."*', (0, 1), (1, 2)),
    # Each instruction may be followed by another form.
    ('"Dogs, cats."\nSo "it is', (0, 0), (1, 2)),
    ('Dogs, cats.', (0, 0), (0, 0)),
    ('', (0, 0), (0, 0)),
  ],
)
def test_accuracies_of_a_response(tmp_path, response, strict, loose):
  """By hand: (all followed, how many)."""
  task = task_of(tmp_path, ROW)
  example = task.example('test', 0)
  assert example.messages[-1]['content'] == 'Write of dogs.'
  found = task.reward(example, response)
  assert found == {
    'outcome': strict[0],
    'strict': strict[0],
    'strict_followed': strict[1],
    'loose': loose[0],
    'loose_followed': loose[1],
    'instructions': 2,
  }
  other = dataclasses.replace(task, outcome='loose')
  assert other.reward(example, response)['outcome'] == loose[0]


def test_accuracies_of_instructions():
  """1 of 2 and 1 of 1 are followed: 2/3, not 3/4; the third is not judged.

  Samples have the same numbers under other names.
  """
  arrays = {
    'reward/strict_followed': np.array([[1.0], [1.0], [np.nan]]),
    'reward/instructions': np.array([[2.0], [1.0], [np.nan]]),
  }
  ratios = {'instruction_strict': ('strict_followed', 'instructions')}
  found = evaluation._ratios(arrays, ratios, '')
  assert found == {'reward/instruction_strict': pytest.approx(2 / 3)}
  found = evaluation._ratios(arrays, ratios, 'sample_')
  assert [*found] == ['sample_reward/instruction_strict']
  assert evaluation._ratios(None, ratios, '') == {}
  names = InstructionRows.traits.ratios
  assert [*names] == ['instruction_strict', 'instruction_loose']


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'prompt': ' '}, r"rows.jsonl:1: field 'prompt' is empty"),
    ({'kwargs': [{}]}, r"'instruction_id_list' has 2 .* 'kwargs' has 1 obj"),
    ({'kwargs': [{}, 3]}, r"field 'kwargs.1' is int, not an object"),
    ({'kwargs': None}, r"field 'kwargs' is NoneType, or empty"),
    (
      {'instruction_id_list': ['punctuation:no_comma', 'no:such']},
      r"field 'instruction_id_list.1': 'no:such' is not one of",
    ),
    ({'kwargs': [{'a': 1}, {}]}, r"list.0': punctuation:no_comma has the arg"),
  ],
)
def test_a_bad_row_is_named(tmp_path, changes, message):
  bad = {**ROW, **changes}
  with pytest.raises(BadRowError, match=message):
    task_of(tmp_path, bad).num_prompts('test')
  assert task_of(tmp_path, bad, ROW, bad_rows='skip').num_prompts('test') == 1


def test_the_suite_has_541_rows(tmp_path):
  path = tmp_path / 'rows.jsonl'
  path.write_text((json.dumps(ROW) + '\n') * 540)
  task = suite('ifeval', str(path), detector='scripts')
  with pytest.raises(ValueError, match='540 usable rows.*= 541'):
    task.num_prompts('test')
  again = suite('ifeval', str(path), rows=540, detector='scripts')
  assert again.num_prompts('test') == 540
  assert from_json(to_json(again)) == again


def test_a_missing_detector_is_named(tmp_path, monkeypatch):
  """Before anything is compiled, with the weaker choice."""
  monkeypatch.setitem(sys.modules, 'langdetect', None)
  task = task_of(tmp_path, ROW, detector='langdetect')
  with pytest.raises(
    ImportError, match="detector='langdetect' needs .*pip install"
  ):
    task.num_prompts('test')


def test_bad_arguments_are_named(tmp_path):
  with pytest.raises(ValueError, match='InstructionRows.sources is empty'):
    InstructionRows(sources={})
  with pytest.raises(ValueError, match=r"num_rows has \['train'\]"):
    task_of(tmp_path, ROW, num_rows={'train': 1})
  plain = task_of(tmp_path, ROW, template=PlainTemplate('Q: {question}'))
  assert plain.example('test', 0).prompt == 'Q: Write of dogs.'
