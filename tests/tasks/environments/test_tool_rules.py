"""Rules of conversations with tools, fenced programs, and a retriever."""

import dataclasses
import json
import threading
import urllib.error
import urllib.request

import pytest

from experiments.tools import retriever as server_lib
from rl_jax.tasks import (
  FencedCalls,
  MarkedCalls,
  PlainTemplate,
  QuestionAnswer,
  ToolRules,
  WithTools,
)
from rl_jax.tasks.environments import retriever, tool_functions, tool_makers
from rl_jax.verification import sandbox

INVALID = '\nNeither a search nor an answer.\n'
SEARCH = MarkedCalls(
  tool='shout',
  argument='text',
  opening='<search>',
  closing='</search>',
  result='\n<information>{result}</information>\n',
  closed=True,
)
SEARCHING = ToolRules(ends=('</answer>',), no_call=INVALID, judged='episode')
TORL = FencedCalls(tool='shout', argument='text', asks='```output')
DOCUMENTS = (
  'Paris\nThe capital of France.',
  'Bern\nThe capital of Switzerland.',
  'Rhine\nA river.',
)


def shout(text: str) -> str:
  """Says it aloud.

  Args:
    text: what
  """
  return text.upper()


def same(text: str) -> str:
  """Says it again.

  Args:
    text: what
  """
  return text


def play(tmp_path, form, rules, *turns, extract='answer_tags', **fields):
  """The replies to turns."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'The capital?', 'answer': 'BERN'}))
  task = WithTools(
    task=QuestionAnswer(
      sources={'train': str(path)},
      template=PlainTemplate('{question}'),
      extract=extract,
      verifier='text',
    ),
    shown='none',
    form=form,
    rules=rules,
    **{'functions': (shout,)} | fields,
  )
  episode = task.make(task.example('train', 0))
  episode.reset(0)
  return [episode.step(turn) for turn in turns]


def test_a_turn_without_a_call_is_told_so_and_the_episode_goes_on(tmp_path):
  """Search-R1's episode: nothing, a search, and the answer; all is judged."""
  lost, found, end = play(
    tmp_path,
    SEARCH,
    SEARCHING,
    'Hm.',
    'I ask. <search> bern </search>',
    '<answer> BERN </answer>',
  )
  assert (lost.observation, lost.done, lost.calls) == (INVALID, False, 0)
  assert found.observation == '\n<information>BERN</information>\n'
  assert (found.calls, found.done) == (1, False)
  assert end.done and end.components['outcome'] == 1.0


def test_a_call_without_its_end_is_none(tmp_path):
  """A call ends where the form says so; else at the end of the turn."""
  (reply,) = play(tmp_path, SEARCH, SEARCHING, '<search> bern')
  assert (reply.observation, reply.calls) == (INVALID, 0)
  assert [x.arguments for x in MarkedCalls().calls_in('Call: 1')] == [
    {'expression': '1'}
  ]


def test_calls_beyond_the_limit_are_not_run(tmp_path):
  """The turn is the answer, and judged with all that was said before."""
  rules = ToolRules(max_calls=1, judged='episode')
  first, second = play(
    tmp_path,
    SEARCH,
    rules,
    '<answer>BERN</answer> <search>x</search>',
    '<search>y</search>',
  )
  assert first.calls == 1 and not first.done
  assert second.done and second.calls == 0
  assert second.components['outcome'] == 1.0
  (reply,) = play(
    tmp_path, SEARCH, ToolRules(max_calls=0), '<search>y</search>'
  )
  assert reply.done and reply.components['calls'] == 0.0


def test_an_answer_beside_a_call_ends(tmp_path):
  """The rule that ends an episode comes first."""
  rules = ToolRules(ends=('</answer>',))
  (reply,) = play(
    tmp_path, SEARCH, rules, '<search>x</search><answer>BERN</answer>'
  )
  assert reply.done and reply.components['outcome'] == 1.0


def test_a_result_may_end_the_episode(tmp_path):
  """SimpleTIR: a program prints the box; it is judged with the turns."""
  rules = ToolRules(result_ends=('\\boxed{',), judged='episode')
  form = dataclasses.replace(SEARCH, tool='same')
  for answer, outcome in (('BERN', 1.0), ('GENF', 0.0)):
    (reply,) = play(
      tmp_path,
      form,
      rules,
      f'<search>\\boxed{{{answer}}}</search>',
      extract='boxed',
      functions=(same,),
    )
    assert reply.done and reply.observation == ''
    assert reply.components['outcome'] == outcome
    assert reply.components['calls'] == 1.0


def test_long_results_lose_their_middle(tmp_path):
  """ToRL: 128 characters at either side of three dots."""
  rules = ToolRules(most_characters=256)
  assert rules.shown('a' * 256) == 'a' * 256
  assert rules.shown('a' * 200 + 'b' * 57) == (
    'a' * 128 + '...' + 'a' * 71 + 'b' * 57
  )
  short = ToolRules(most_characters=4)
  (reply,) = play(tmp_path, SEARCH, short, '<search>abcdef</search>')
  assert reply.observation == '\n<information>AB...EF</information>\n'


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'no_call': 'x'}, "no_call = 'x' without ends"),
    ({'ends': ('',)}, r"ends = \('',\): expected texts"),
    ({'max_calls': -1}, 'ToolRules.max_calls = -1'),
    ({'most_characters': 1}, 'ToolRules.most_characters = 1'),
    ({'judged': 'all'}, "ToolRules.judged = 'all'"),
  ],
)
def test_rules_that_cannot_be(fields, message):
  with pytest.raises(ValueError, match=message):
    ToolRules(**fields)


@pytest.mark.parametrize(
  ('text', 'found'),
  [
    ('```python\na\nb\n```\n```output', 'a\nb\n'),
    ('```python\na\n```\n```python\nb\n```\n```output', 'b\n'),
    ('So: ```python\na\n```\n```output', 'a\n'),
    ('```python\na\n```\n', None),  # does not ask
    ('```python\na\n```output', None),  # the block has no end
    ('```python\na\n', None),
    ('```java\na\n```\n```output', None),
    ('no program ```output', None),
    ('a ```b``` c\n```python\na\n```\n```output', 'a\n'),
  ],
)
def test_programs_between_fences(text, found):
  """ToRL's form: the last whole block, if the turn asks for its output."""
  calls = TORL.calls_in(text)
  assert [x.arguments['text'] for x in calls] == [found] * (found is not None)


def test_other_fences():
  """SimpleTIR's form: the first block of several names, without asking."""
  form = FencedCalls(languages=('python', 'py', ''), block='first')
  text = '```text\nx\n```\n```py\na\n```\n```\nb\n```\n'
  assert [x.arguments['code'] for x in form.calls_in(text)] == ['a\n']
  with pytest.raises(ValueError, match='languages is empty'):
    FencedCalls(languages=())
  with pytest.raises(ValueError, match='cannot follow a fence'):
    FencedCalls(languages=('a b',))
  with pytest.raises(ValueError, match='does not contain {result}'):
    FencedCalls(result='x')
  with pytest.raises(ValueError, match='FencedCalls: tools and what they'):
    TORL.instructions([tool_functions.schema(tool_makers.python)])
  schema = tool_functions.schema(shout)
  assert "```python and ``` and '```output' to end" in TORL.instructions(
    [schema]
  )


def test_packages_run_within_the_same_limits(tmp_path):
  """Those that are named can be imported, with all layers of the sandbox."""
  limits = sandbox.Limits(
    packages=('sympy', 'mpmath', 'numpy'), memory_bytes=1 << 30
  )
  python = tool_makers.python_hiding((), limits)
  code = 'import sympy, numpy\nprint(sympy.factor("x**2-1"), numpy.eye(2)[0])'
  assert python(code) == '(x - 1)*(x + 1) [1. 0.]\n'
  assert (
    'the standard library and sympy and'
    in tool_functions.schema(python)['function']['parameters']['properties'][
      'code'
    ]['description']
  )
  for refused in ('import pytest', 'import socket; socket.socket()'):
    with pytest.raises(ValueError, match='Error'):
      python(refused)
  secret = tmp_path / 'answers'
  secret.write_text('5')
  with pytest.raises(ValueError, match='PermissionError'):
    python(f'print(open({str(secret)!r}).read())')
  with pytest.raises(ValueError, match='No module named .numpy'):
    tool_makers.python('import numpy')


def test_packages_are_checked_before_a_run():
  with pytest.raises(ValueError, match="'a b' is not the name of a package"):
    sandbox.Limits(packages=('a b',))
  with pytest.raises(sandbox.SandboxError, match="'nothing_here' is not inst"):
    sandbox.check_packages('x', sandbox.Limits(packages=('nothing_here',)))
  with pytest.raises(RuntimeError, match="x.packages has 'sympy', which cann"):
    sandbox.check_packages('x', sandbox.Limits(packages=('sympy',)))


@pytest.fixture(name='corpus')
def _corpus(tmp_path):
  pytest.importorskip('bm25s', reason="needs the extra 'search'")
  path = tmp_path / 'documents.jsonl'
  rows = [json.dumps({'contents': text}) for text in DOCUMENTS]
  path.write_text('\n'.join(rows))
  return str(path)


@pytest.fixture(name='address')
def _address(corpus):
  """A server of the documents, in a thread."""
  with server_lib.make(corpus, 0) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f'http://127.0.0.1:{server.server_port}/retrieve'
    server.shutdown()
    thread.join()


def test_a_server_answers_many_queries_at_once(address, corpus):
  """The protocol of Search-R1; a file gives the same."""
  queries = ['capital of France', 'the river', 'nothing like it']
  found = retriever.ask(address, queries, 1)
  assert found == retriever.ask(corpus, queries, 1)
  assert [[x['document']['contents'] for x in one] for one in found] == [
    [DOCUMENTS[0]],
    [DOCUMENTS[2]],
    [],
  ]
  plain = server_lib.answered(corpus, {'queries': queries[:1], 'topk': 1})
  assert plain == [[{'contents': DOCUMENTS[0]}]]


def test_an_episode_asks_the_server(address, tmp_path):
  form = MarkedCalls(
    tool='retrieve',
    argument='query',
    opening='<search>',
    closing='</search>',
    result='{result}',
  )
  first, second = play(
    tmp_path,
    form,
    SEARCHING,
    '<search>capital of Switzerland</search>',
    '<answer>BERN</answer>',
    functions=(f'retrieve:{address}',),
  )
  line, *_ = first.observation.splitlines()
  assert line == 'Doc 1(Title: Bern) The capital of Switzerland.'
  assert second.components['outcome'] == 1.0


def test_a_retriever_that_is_not_there_is_named(tmp_path):
  with pytest.raises(ValueError, match="'retrieve:a.txt': expected the http"):
    retriever.retrieve('a.txt')
  with pytest.raises(FileNotFoundError, match='absent.jsonl'):
    retriever.check(str(tmp_path / 'absent.jsonl'))
  with pytest.raises(ConnectionError, match='127.0.0.1:9/x did not answer'):
    retriever.check('http://127.0.0.1:9/x')
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'a', 'answer': 'b'}))
  task = WithTools(
    task=QuestionAnswer(sources={'train': str(path)}, verifier='text'),
    functions=('retrieve:http://127.0.0.1:9/x',),
    shown='none',
  )
  with pytest.raises(ConnectionError, match='127.0.0.1:9/x did not answer'):
    task.prepare()
  path.write_text('{"text": "a"}\n')
  with pytest.raises(ValueError, match='rows.jsonl:1: no field "contents"'):
    retriever.check(str(path))


@pytest.mark.parametrize(
  'answer',
  [[], {'result': []}, {'result': [[{'document': {}}]]}, {'error': 'x'}],
)
def test_another_answer_is_an_error(answer):
  with pytest.raises(ValueError, match='has no'):
    retriever._result(answer, 1)


def test_a_request_that_cannot_be_read(address):
  """The server says what is wrong, and continues."""
  for body in (b'{', b'{}', b'[]'):
    with pytest.raises(urllib.error.HTTPError, match='400'):
      urllib.request.urlopen(urllib.request.Request(address, body), timeout=10)
  assert retriever.ask(address, ['river'], 1)[0]
