"""Functions are judged by their values on hidden tests."""

import json
import math
import sys

import pytest

from rl_jax.tasks import PlainTemplate, PythonFunction, python_function
from rl_jax.tasks.base import PLACE
from rl_jax.verification.pool import VerifierPool

pytestmark = pytest.mark.skipif(
  sys.platform != 'linux', reason='the sandbox needs Linux'
)
ROWS = [
  {
    'prompt': 'Write add(a, b), the sum.',
    'function': 'add',
    'tests': [
      {'arguments': [1, 2], 'expected': 3},
      {'arguments': [0.1, 0.2], 'expected': 0.3},
    ],
    'solution': 'def add(a, b):\n  return a + b\n',
  },
  {
    'prompt': 'Write pairs(x), each item with its index.',
    'function': 'pairs',
    'tests': [{'arguments': [['a']], 'expected': [[0, 'a']]}],
  },
]


CODE = 'def f():\n  return 1\n'


@pytest.mark.parametrize(
  ('text', 'code'),
  [
    (CODE, CODE),
    (f'```python\n{CODE}```', CODE),
    (f'```Python3\r\n{CODE}```\r\n', CODE),
    (f'```\n{CODE}', CODE),
    (f'```python\nx\n```\n```python\n{CODE}```', CODE),
    (f'```python\n{CODE}```\nRun:\n```bash\npython f.py\n```\nThis.', CODE),
    (f'```python\n{CODE}```\nprints\n```text\n1\n```', CODE),
    ('```bash\nls\n```', '```bash\nls\n```'),
  ],
)
def test_the_last_block_of_python_is_the_code(text, code):
  assert python_function.extract_code(text) == code


def make_task(tmp_path, rows=ROWS, **changes):
  path = tmp_path / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  template = PlainTemplate(text='{question}\n')
  return PythonFunction(path=str(path), template=template, **changes)


def test_examples_and_the_held_out_end(tmp_path):
  task = make_task(tmp_path, num_validation=1)
  assert (task.num_prompts('train'), task.num_prompts('validation')) == (1, 1)
  example = task.example('validation', 0)
  assert example.prompt == 'Write pairs(x), each item with its index.\n'
  assert task.target(task.example('train', 0)).startswith('def add')
  assert example.meta[PLACE].endswith('rows.jsonl:2')


@pytest.mark.parametrize(
  ('response', 'outcome', 'passed', 'ran'),
  [
    ('def add(a, b):\n  return a + b', 1.0, 1.0, 1.0),
    ('Sure:\n```python\ndef add(a, b):\n  return b + a\n```\n', 1.0, 1.0, 1.0),
    ('def add(a, b):\n  return 3', 0.0, 0.5, 1.0),
    ('def add(a, b):\n  return str(a + b)', 0.0, 0.0, 1.0),
    ('def add(a, b):\n  return 1 / (a - 1)', 0.0, 0.0, 0.0),
    ('def sub(a, b):\n  return a - b', 0.0, 0.0, 0.0),
    ('add = 3', 0.0, 0.0, 0.0),
    ('I do not know', 0.0, 0.0, 0.0),
  ],
)
def test_scores(tmp_path, response, outcome, passed, ran):
  task = make_task(tmp_path)
  assert task.reward(task.example('train', 0), response) == {
    'outcome': outcome,
    'passed': passed,
    'ran': ran,
  }


def test_tuples_are_lists_and_the_target_is_right(tmp_path):
  task = make_task(tmp_path)
  response = 'def pairs(x):\n  return tuple(enumerate(x))'
  assert task.reward(task.example('train', 1), response)['outcome'] == 1.0
  example = task.example('train', 0)
  assert task.reward(example, task.target(example))['outcome'] == 1.0


def test_in_reward_workers(tmp_path):
  """The pool has its own limit; an endless loop fails one sample."""
  task = make_task(tmp_path)
  rows = [task.example('train', 0)] * 3
  good = 'def add(a, b):\n  return a + b'
  limits = {'wall_seconds': 1.0}
  task = make_task(tmp_path, limits=python_function.sandbox.Limits(**limits))
  with VerifierPool(task, 2, timeout_seconds=30.0) as pool:
    outcomes = pool.reward(rows, [good, 'while True: pass', good])
  assert [o.components['outcome'] for o in outcomes] == [1.0, 0.0, 1.0]


def test_the_verifier_may_not_end_before_the_sandbox(tmp_path):
  """Else an endless loop is voided instead of wrong."""
  task = make_task(tmp_path)
  for seconds in (1.0, task.limits.wall_seconds, task.traits.reward_seconds):
    with pytest.raises(ValueError, match='timeout_seconds = .* must exceed'):
      VerifierPool(task, 1, timeout_seconds=seconds)


def test_equality_is_that_of_json_values():
  def equal(a, b):
    return python_function.equal(a, b, 1e-6)

  assert equal(1, 1.0) and equal(0.1 + 0.2, 0.3) and equal('a', 'a')
  assert equal({'a': [1, None]}, {'a': [1, None]})
  assert not equal(True, 1) and not equal(1, True) and not equal(0, False)
  assert not equal(math.nan, math.nan) and not equal('1', 1)
  assert not equal(5761458.0, 5761455) and equal(5761455.0, 5761455)
  assert not equal(1.0000001, 1) and not equal([3.0000001], [3])
  assert equal(2.9999999, 3.0) and not equal(math.inf, 3)
  assert not equal(0, 6.67e-11) and not equal(9.11e-31, 6.67e-11)
  assert equal(6.67e-11 * (1 + 1e-9), 6.67e-11) and equal(1e-17, 0.0)
  assert not equal(9007199254740992.0, 9007199254740993)
  assert not equal([1], [1, 2]) and not equal({'a': 1}, {'b': 1})
  assert not equal(10**400, 1.0) and not equal(2**53 + 1, 2**53)


@pytest.mark.parametrize(
  ('change', 'words'),
  [
    ({'tests': []}, 'tests is not a list'),
    ({'tests': [{'arguments': 1, 'expected': 1}]}, 'tests is not a list'),
    ({'tests': [{'arguments': []}]}, 'tests is not a list'),
    ({'function': 'two words'}, 'is not a name'),
    ({'prompt': ' '}, 'the prompt is empty'),
  ],
)
def test_bad_rows_are_named(tmp_path, change, words):
  with pytest.raises(ValueError, match=rf'rows.jsonl:2: .*{words}'):
    make_task(tmp_path, [ROWS[0], {**ROWS[1], **change}]).num_prompts('train')


@pytest.mark.parametrize(
  ('missing', 'refused'),
  [
    ({}, False),
    ({'landlock': 'x'}, False),
    ({'namespaces': 'x'}, False),
    ({'landlock': 'x', 'namespaces': 'x'}, True),
    ({'landlock': 'x', 'mounts': 'x'}, True),
    ({'seccomp': 'x'}, True),
  ],
)
def test_landlock_or_namespaces_are_required(
  tmp_path, monkeypatch, missing, refused
):
  report = python_function.sandbox.Report((), 'exit', missing)
  monkeypatch.setattr(python_function.sandbox, 'run_calls', lambda *_: report)
  task = make_task(tmp_path)
  if refused:
    with pytest.raises(RuntimeError, match=r'read the hidden .* task.require='):
      task.prepare()
  else:
    task.prepare()
  few = python_function.sandbox.Limits(layers=('seccomp',))
  with pytest.raises(RuntimeError, match='layers in use'):
    make_task(tmp_path, limits=few).prepare()


@pytest.mark.parametrize('layer', ['landlock', 'namespaces'])
def test_hidden_tests_cannot_be_read(tmp_path, layer):
  """By either layer only; the code knows where the file is."""
  for folder in (tmp_path, *tmp_path.parents[:2]):
    folder.chmod(0o755)
  limits = python_function.sandbox.Limits(layers=(layer,))
  if python_function.sandbox.run_calls('', '', [], limits).missing.keys() & {
    layer,
    'mounts',
  }:
    pytest.skip(f'the kernel lacks {layer}')
  task = make_task(tmp_path, limits=limits)
  path = tmp_path / 'rows.jsonl'
  code = f"""
import json
rows = [json.loads(line) for line in open({str(path)!r})]
def add(a, b):
  for test in rows[0]['tests']:
    if test['arguments'] == [a, b]:
      return test['expected']
"""
  example = task.example('train', 0)
  assert task.reward(example, code)['outcome'] == 0.0
  assert len(path.read_text().splitlines()) == len(ROWS)


def test_a_missing_layer_is_an_error_at_start_up(tmp_path, monkeypatch):
  report = python_function.sandbox.Report((), 'exit', {'seccomp': 'too old'})
  monkeypatch.setattr(python_function.sandbox, 'run_calls', lambda *_: report)
  with pytest.raises(RuntimeError, match='seccomp.*too old'):
    make_task(tmp_path).prepare()
  make_task(tmp_path, require=()).prepare()
