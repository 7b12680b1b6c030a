"""Whatever comes from outside: a valid result or a ValueError, in bounded time.

Rows, overrides and answers are changed at random from valid ones.
The same examples every time; more of them in `make test-all`.
"""

import dataclasses
from fractions import Fraction
import importlib.util
import json
import pathlib

from hypothesis import strategies as st
import pytest

from configs.worlds import bandit
from rl_jax import overrides, serialization
from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.tasks import QuestionAnswer, answers, base, expressions

_PATH = pathlib.Path(__file__).with_name('random_damage.py')
_SPEC = importlib.util.spec_from_file_location('random_damage', _PATH)
damage = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(damage)

FEW = 20
TEXTS, VALUES = damage.TEXTS, damage.VALUES
outcome = damage.outcome
CONFIG = bandit.get_config(
  Method(credit=(credit.GroupCenter(),), losses=(losses.PPOClip(),))
)
ROWS = [
  {'id': 1, 'question': 'What is 1 + 2?', 'answer': 'It is #### 3'},
  {'id': 'b', 'question': 'Half of x', 'answer': r'#### \frac{x}{2}'},
]


@st.composite
def files_of_rows(draw):
  """(bytes, fields of the task)."""
  lines = [
    draw(damage.changed(json.dumps(row)) | VALUES.map(dumped)) for row in ROWS
  ]
  data = draw(damage.damaged(b'\n'.join(lines) + b'\n'))
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
  path = damage.written(directory, '.jsonl', data)
  task = QuestionAnswer(sources={'train': path}, **fields)
  for index in range(outcome(task.num_prompts, 'train') or 0):
    row = task.example('train', index)
    assert row.meta['question'] and row.answer
    assert row.meta[base.PLACE].startswith(path)
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
  """A value that is taken can be recorded and read back."""
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
  """The answer as a formula and within a text, equal to itself."""
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


@pytest.mark.parametrize('name', CASES)
def test_a_few(name, tmp_path):
  made, holds, _ = CASES[name]
  damage.run(made, holds, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', CASES)
def test_many(name, tmp_path):
  assert sum(count for _, _, count in CASES.values()) >= 2000
  damage.run(*CASES[name], tmp_path)
