"""Whatever comes from outside: a valid result or a ValueError, in bounded time.

Rows, overrides and answers are changed at random from valid ones.
The same examples every time; more of them in `make test-all`.
"""

import contextlib
import dataclasses
from fractions import Fraction
import itertools
import json
import os
import signal
import warnings

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import pytest

from configs import bandit
from rl_jax import overrides, serialization
from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.tasks import QuestionAnswer, answers, expressions

FEW, SECONDS = 20, 30  # of an example: where nothing ends, not a benchmark
CONFIG = bandit.get_config(
  Method(credit=(credit.GroupCenter(),), losses=(losses.PPOClip(),))
)
_NUMBER = itertools.count()


class Endless(BaseException):
  """No library catches it."""


@contextlib.contextmanager
def bounded():
  """Ends what takes longer than SECONDS; warnings of libraries pass."""

  def end(*_):
    raise Endless

  old = signal.signal(signal.SIGALRM, end)
  signal.alarm(SECONDS)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      yield
  finally:
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def outcome(function, *args):
  """What it returns, or None after a ValueError with a readable message."""
  try:
    return function(*args)
  except ValueError as error:
    assert str(error)
    return None


# What a program that writes files gets wrong, and what an attacker gets right.
NUMBERS = st.one_of(
  st.integers(-3, 70),
  st.sampled_from([2**31, 2**63, 10**30, 10**400, 0.5, 1e308]),
  st.floats(),
)
TEXTS = st.one_of(
  st.text(max_size=8),
  st.sampled_from(['', '\0', '\u0661', '²', '\ud800', '{' * 300, '../x']),
)
VALUES = st.recursive(
  st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
  lambda x: st.lists(x, max_size=3) | st.dictionaries(TEXTS, x, max_size=3),
  max_leaves=6,
)


@st.composite
def damaged(draw, data):
  """Bytes of which a few are replaced, removed, doubled or cut."""
  for _ in range(draw(st.integers(0, 3))):
    at = draw(st.integers(0, len(data)))
    end = at + draw(st.sampled_from([0, 0, 1, 4, 8, 10**9]))
    new = draw(st.binary(max_size=9) | st.sampled_from([b'', data[at:end] * 2]))
    data = data[:at] + new + data[end:]
  return data


def places(tree, path=()):
  """The paths of all values in a JSON tree."""
  yield path
  if isinstance(tree, (dict, list)):
    keys = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
      yield from places(tree[key], (*path, key))


@st.composite
def changed(draw, text):
  """A JSON text in which some values are others, or gone."""
  tree = json.loads(text)
  for _ in range(draw(st.integers(1, 2))):
    path = draw(st.sampled_from(list(places(tree))))
    new = draw(VALUES)
    if not path:
      tree = new
      continue
    node = tree
    for key in path[:-1]:
      node = node[key]
    if draw(st.integers(0, 5)):
      node[path[-1]] = new
    else:
      del node[path[-1]]
  return json.dumps(tree).encode()


def written(directory, name, data):
  """The path of a file that no other example has."""
  path = os.path.join(directory, f'{next(_NUMBER)}{name}')
  with open(path, 'wb') as file:
    file.write(data)
  return path


ROWS = [
  {'id': 1, 'question': 'What is 1 + 2?', 'answer': 'It is #### 3'},
  {'id': 'b', 'question': 'Half of x', 'answer': r'#### \frac{x}{2}'},
]


@st.composite
def files_of_rows(draw):
  """(bytes, fields of the task)."""
  lines = [draw(changed(json.dumps(row)) | VALUES.map(dumped)) for row in ROWS]
  data = draw(damaged(b'\n'.join(lines) + b'\n'))
  fields = {
    'bad_rows': ('error', 'skip'),
    'verifier': ('number', 'math', 'text', 'expression'),
    'gold': answers.MODES,
    'id_field': ('', 'id'),
    'max_row_bytes': (1000, 40),
  }
  return data, {k: draw(st.sampled_from(v)) for k, v in fields.items()}


def dumped(value):
  """JSON of today, in UTF-8 as far as that goes."""
  return json.dumps(value, ensure_ascii=False).encode(errors='surrogatepass')


def rows(directory, example):
  """Every row that is taken has a question, an answer and a reward."""
  data, fields = example
  path = written(directory, '.jsonl', data)
  task = QuestionAnswer(sources={'train': path}, **fields)
  for index in range(outcome(task.num_prompts, 'train') or 0):
    row = task.example('train', index)
    assert row.meta['question'] and row.answer
    assert row.meta['where'].startswith(path)
    reward = task.reward(row, f'It is {row.answer}')
    assert set(reward.values()) <= {0.0, 1.0}


def fields_of(node, path=''):
  """Dotted paths of a configuration."""
  pairs = {}
  if dataclasses.is_dataclass(node):
    pairs = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
  elif isinstance(node, tuple):
    pairs = dict(enumerate(node))
  for name, value in pairs.items():
    yield f'{path}{name}'
    yield from fields_of(value, f'{path}{name}.')


PATHS = st.sampled_from(sorted(fields_of(CONFIG)))
LITERALS = st.one_of(
  VALUES.map(repr),
  VALUES.map(json.dumps),
  TEXTS,
  st.from_regex(r'(PPOClip|GroupCenter|Bandit)\((\w{1,5}=[\w\[{(.\-]*)?\)'),
  st.sampled_from(['{[]: 1}', '{{}}', '1e999', '-' * 9999 + '1', '(' * 9999])
  | st.sampled_from(['A' + '(' * 250 + ')', 'A(x={[]: 1})', '9' * 5000, '1j'])
  | st.sampled_from(['b""', '{1}', 'GroupCenter()', 'null', '...', 'A(**{})']),
)
KEYS = st.sampled_from(['', '.', '-', '--1', '²', '9' * 5000, '-1', 'PPOClip'])
OVERRIDES = st.tuples(
  PATHS | st.tuples(PATHS, TEXTS | KEYS).map('.'.join) | TEXTS, LITERALS
)


def flags(directory, example):
  """What is taken can be recorded and read back."""
  for change in (overrides.override, overrides.add_piece):
    config = outcome(change, CONFIG, *example)
    if config is not None and outcome(recordable, config):
      text = serialization.to_json(config)
      back = outcome(serialization.from_json, text)
      assert back is None or serialization.to_json(back) == text


def recordable(config):
  """True, or the ValueError at the start of a run."""
  serialization.check(config)
  return True


FRAGMENTS = st.sampled_from(
  r'1 -2 3/4 1e3 1e99 1,000 50% $5$ 10^{9^9} 2^{10} \frac{1}{2} \frac \sqrt{2}'
  r' \boxed{ } { ( ) [ ] , = < \pm \cup \text{m} \{ \} x y! ! _8 \pi \sin | ** '
  r'\infty \le \cdot 1/0 0^{-1} \begin{pmatrix} \end{pmatrix} & \\ #### ²  '
  r'<answer> </answer> <think> \overline{3} 0. \int \sum_{1}^{9} \log \lim % * '
  r'999999 // + - ^ (( ))'.split()
)
REPLIES = st.lists(FRAGMENTS | TEXTS, max_size=12).flatmap(
  lambda parts: st.sampled_from(['', ' ']).map(lambda gap: gap.join(parts))
)
ARITHMETIC = st.text('0123456789+-*/() ', max_size=220)


def replies(directory, example):
  """Every way to read an answer gives one, or none."""
  answer, gold, sum_ = example
  for mode in answers.MODES:
    found = answers.extract(answer, mode)
    assert found is None or (found and found == found.strip())
    assert isinstance(answers.well_formed(answer, mode), bool)
  value = answers.parse_number(answer)
  assert value is None or isinstance(value, Fraction)
  assert answers.numbers_equal(answer, answer, 0.0) == (value is not None)
  assert isinstance(answers.numbers_equal(answer, gold, 1e-6), bool)
  for text in (answer, sum_):
    result = outcome(expressions.evaluate, text)
    assert result is None or isinstance(result[0], Fraction)


def formulas(directory, example):
  """As one formula and within a text, equal to itself."""
  answer, gold, _ = example
  for extracted in (True, False):
    equal = outcome(answers.math_equal, answer, gold, extracted)
    assert equal in ((None,) if not gold.strip() else (True, False))
  assert isinstance(answers.normal_form(answer, 'math'), str)
  if answer.strip() and len(answer) <= 300:
    assert answers.math_equal(answer, answer)


TRIPLES = st.tuples(REPLIES, REPLIES, ARITHMETIC)
CASES = {  # what is made, what must hold, and how often
  'rows': (files_of_rows(), rows, 600),
  'flags': (OVERRIDES, flags, 700),
  'replies': (TRIPLES, replies, 600),
  'formulas': (TRIPLES, formulas, 300),
}


def run(name, count, directory):
  """As many examples, the same every time."""
  made, holds, _ = CASES[name]

  @settings(
    max_examples=count,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
  )
  @given(made)
  def check(example):
    with bounded():
      holds(str(directory), example)

  check()


@pytest.mark.parametrize('name', CASES)
def test_a_few(name, tmp_path):
  run(name, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', CASES)
def test_many(name, tmp_path):
  assert sum(count for _, _, count in CASES.values()) >= 2000
  run(name, CASES[name][2], tmp_path)
