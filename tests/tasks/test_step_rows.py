"""Labelled steps of an alphabet without new lines."""

import json

import pytest

from rl_jax.tasks import StepRows


def test_steps_are_as_they_are(tmp_path):
  path = tmp_path / 'rows.jsonl'
  row = {'prompt': '3+4=', 'completions': ['<3+4=7>', '7'], 'labels': [1, 0]}
  path.write_text(json.dumps(row) + '\n')
  task = StepRows(path=str(path))
  (logged,) = task.recorded(task.example('train', 0))
  assert logged.steps == ('<3+4=7>', '7') and logged.text == '<3+4=7>7'
  assert logged.step_labels == (1.0, 0.0)


def test_other_forms_are_refused(tmp_path):
  with pytest.raises(ValueError, match="StepRows.form = 'pair'"):
    StepRows(path='x.jsonl', form='pair')
