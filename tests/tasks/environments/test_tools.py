"""Tools: schemas of functions, calls in text, and conversations with them."""

import dataclasses
import datetime
import functools
import json

import numpy as np
import pytest

from rl_jax import serialization, user_modules
from rl_jax.config import EvaluationConfig
from rl_jax.tasks import (
  ChatTemplate,
  EvaluationSet,
  MarkedCalls,
  Mixture,
  MixturePart,
  QuestionAnswer,
  WithTools,
)
from rl_jax.tasks.base import PART, Example
from rl_jax.tasks.environments import tool_calls, tool_functions
from rl_jax.tasks.environments.calculator_tool import calculator
from rl_jax.tasks.environments.tool_rules import ToolRules
from rl_jax.tasks.evaluation_set import Several
from rl_jax.verification.session_host import check_reply
from rl_jax.verification.sessions import Request, SessionPool
from rl_jax.worlds import Arithmetic

BRACKETS = {'opening': '[', 'closing': '->', 'result': ' {result}]'}
WEATHER = '''
def weather(city: str, days: int = 1, exact: bool | None = None) -> dict:
  """Says what the weather will be.

  It is always fine.

  Args:
    city: where it is,
      in any language
    days (int): how many
  """
  if city == 'nowhere':
    raise KeyError(city)
  return {'city': city, 'fine': [True] * days}
'''


DRAWS = '''
import random
import numpy as np

def draw() -> str:
  """Draws two numbers."""
  return f'{random.random()} {np.random.random()}'
'''


def make_task(tmp_path, **fields):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': '12 times 13?', 'answer': 156}))
  own = QuestionAnswer(
    sources={'train': str(path)},
    template=ChatTemplate(system='Be brief.', prefill='So '),
  )
  return WithTools(task=own, **fields)


def call(name, **arguments):
  return f'<tool_call>{json.dumps({"name": name, "arguments": arguments})}'


def test_the_schema_is_that_of_signature_and_docstring(tmp_path):
  (tmp_path / 'my_weather.py').write_text(WEATHER)
  reference = user_modules.reference(f'{tmp_path}/my_weather.py:weather')
  assert tool_functions.schema(user_modules.resolve(reference)) == {
    'type': 'function',
    'function': {
      'name': 'weather',
      'description': 'Says what the weather will be.',
      'parameters': {
        'type': 'object',
        'properties': {
          'city': {'type': 'string', 'description': 'where it is,'},
          'days': {'type': 'integer', 'description': 'how many'},
          'exact': {'type': 'boolean'},
        },
        'required': ['city'],
      },
    },
  }


@pytest.mark.parametrize(
  ('arguments', 'expected'),
  [
    ({'expression': '2 * (3 + 4)'}, '14'),
    ({'expression': '2 / 3'}, '0.666667'),
    ({'expression': '1 / 0'}, 'calculator: ExpressionError: division by zero'),
    ({'expression': 12}, 'calculator: expression = 12 is no string'),
    ({}, 'calculator: expression is missing'),
    ({'text': '1'}, "calculator has no argument 'text'"),
    (['1'], 'calculator: arguments must be an object'),
    (
      '{"expression": "1"}',
      'calculator: arguments must be an object, not text: leave out the quotes '
      'around it',
    ),
  ],
)
def test_arguments_are_checked_before_the_call(arguments, expected):
  try:
    assert tool_functions.call(calculator, arguments) == expected
  except tool_functions.ToolError as error:
    assert str(error) == expected


def test_functions_that_cannot_be_described_are_errors():
  def silent(x: str):
    return x

  def untyped(x):
    """Documented."""
    return x

  def gathered(*x: str):
    """Documented."""
    return x

  def unknown(x: 'Nowhere'):  # noqa: F821
    """Documented."""
    return x

  def several(x: int | str):
    """Documented."""
    return x

  async def later(x: str):
    """Documented."""
    return x

  def piecewise(x: str):
    """Documented."""
    yield x

  for function, text in (
    (unknown, "tool unknown: its types cannot be read: name 'Nowhere'"),
    (several, r'tool several: argument x has the type int \| str: expected'),
    (later, 'tool later: expected a function that returns its result'),
    (piecewise, 'tool piecewise: expected a function that returns'),
    (dict, 'tool dict: expected a function that returns'),
    (functools.partial(silent, 'a'), r'tool functools.partial\(.*: expected'),
    (silent, 'tool silent: it has no docstring'),
    (untyped, 'tool untyped: argument x has the type None'),
    (gathered, 'tool gathered: argument x cannot be given by its name'),
  ):
    with pytest.raises(ValueError, match=text):
      tool_functions.schema(function)


def returning(what: str):
  """Returns something, or fails."""
  if what == 'failing':
    raise ToolIsBrokenError('\ud800')
  return {
    'array': {'a': np.arange(2), 'b': np.float32(0.5)},
    'keys': {(1, 2): 3},
    'half': '\ud800',
    'date': datetime.date(2026, 1, 2),
    'long': 'x' * 40_001,
  }[what]


def remaining(example: Example, after: int = 0) -> str:
  """Says what is left of the question."""
  return example.meta['question'][after:]


def test_a_tool_may_read_the_example(tmp_path):
  """The policy neither sees nor gives the first argument."""
  found = tool_functions.schema(remaining)['function']['parameters']
  assert list(found['properties']) == ['after'] and found['required'] == []
  task = make_task(tmp_path, functions=(remaining,))
  one = task.make(task.example('train', 0))
  one.reset(0)
  assert one.step(call('remaining', after=3)).observation.startswith('times 13')
  assert one.step(call('remaining')).observation.startswith('12 times 13?')
  wrong = one.step(call('remaining', example='x')).observation
  assert wrong.startswith("error: remaining has no argument 'example'")


class ToolIsBrokenError(ValueError):
  """The error that a tool raises."""


@pytest.mark.parametrize(
  ('what', 'expected'),
  [
    ('array', '{"a": [0, 1], "b": 0.5}'),
    ('date', '"2026-01-02"'),
    ('keys', 'error: returning: TypeError: keys must be str'),
    ('half', "error: returning: UnicodeEncodeError: 'utf-8' codec"),
    ('failing', 'error: returning: ToolIsBrokenError: ?'),
    ('long', 'error: the results have 40001 characters, more than 40000'),
  ],
)
def test_no_result_costs_the_episode(tmp_path, what, expected):
  """A result that is not text becomes an error for the policy."""
  task = make_task(tmp_path, functions=(returning,))
  one = task.make(task.example('train', 0))
  one.reset(0)
  reply = check_reply(one.step(call('returning', what=what)), 'step')
  assert reply['observation'].startswith(expected)
  reply['observation'].encode()


def _listed(value, _):
  return [value]


@pytest.mark.parametrize(
  ('text', 'expected', 'logged'),
  [
    (call('calculator', expression='é' * 4000), 'ExpressionError: longer', 0),
    (
      call('calculator', expression=functools.reduce(_listed, range(600))),
      'error: the call has more than 50 levels',
      1,
    ),
    ('<tool_call>' + '[' * 5000, 'error: the call is not JSON', 1),
    ('<tool_call></tool_call>' * 2000, 'error: 2000 calls are too many', None),
    (f'{call("calculator", expression="2")}</tool_call>' * 900, '2', None),
  ],
)
def test_no_call_costs_the_episode(tmp_path, text, expected, logged):
  """However long, deep or many they are; the log has what fits."""
  task = make_task(tmp_path, shown='text')
  one = task.make(task.example('train', 0))
  one.reset(0)
  reply = check_reply(one.step(text), 'step')
  assert expected in reply['observation'] and not reply['done']
  assert logged is None or len(reply['info']['calls']) == logged


def test_calls_are_found_in_text():
  """Several, one without its end, and what is not a call."""
  text = (
    'First <tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>'
    '<tool_call>{"name": 3}</tool_call> <tool_call>{"name": "b"}'
  )
  first, second, third = tool_calls.JsonCalls().calls_in(text)
  assert (first.name, first.arguments, first.error) == ('a', {'x': 1}, '')
  assert second.error == 'the call is no object with a name'
  assert (third.name, third.arguments) == ('b', {})
  assert (
    'is not JSON' in tool_calls.JsonCalls().calls_in('<tool_call>{')[0].error
  )
  assert tool_calls.JsonCalls().calls_in('no </tool_call>') == []


@pytest.mark.parametrize(
  ('call', 'message'),
  [
    (
      {'name': 'a', 'parameters': {'x': 1}},
      """the call has no "arguments", but ['parameters']""",
    ),
    (
      {'name': 'a', 'args': {'x': 1}, 'id': 'call_1'},
      """the call has no "arguments", but ['args']""",
    ),
    (
      {'type': 'function', 'function': {'name': 'a', 'arguments': '{}'}},
      'the call is within "function": write its name and arguments alone',
    ),
    ({'name': 'a', 'parameters': {}}, ''),
    ({'name': 'a', 'arguments': {}, 'parameters': {'x': 1}}, ''),
  ],
)
def test_calls_of_other_forms_say_what_is_read(call, message):
  """Before, their arguments were said to be missing, or were left out."""
  text = f'<tool_call>{json.dumps(call)}</tool_call>'
  (found,) = tool_calls.JsonCalls().calls_in(text)
  assert found.error == message


def test_marked_calls_are_found_in_text():
  """The end of the turn closes a call; the mark of another form is none."""
  form = MarkedCalls(opening='<<', closing='>>', result='= {result}\n')
  found = form.calls_in('a <<1 + 2>> b <<>> <<3 * 4')
  assert [one.arguments['expression'] for one in found] == [
    '1 + 2',
    '',
    '3 * 4',
  ]
  assert {one.name for one in found} == {'calculator'}
  assert form.calls_in('Call: 1 + 2') == []
  (found,) = MarkedCalls().calls_in('Call: 1 + 2')
  assert found.arguments == {'expression': '1 + 2'}
  assert form.results(['{result}', '7'], wrapped=True) == '= {result}\n= 7\n'


def double(text: str, times: int = 2) -> str:
  """Repeats."""
  return text * times


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'shown': 'template'}, "shown = 'template': .* not MarkedCalls"),
    ({'functions': ('calculator', double)}, "got {'calculator': .* 'double':"),
    ({'form': MarkedCalls(argument='x')}, "must be {'calculator': {'x': 'str"),
    (
      {'form': MarkedCalls('double', 'times'), 'functions': (double,)},
      "got {'double': {'text': 'string'}}",
    ),
  ],
)
def test_marked_calls_need_one_tool_with_one_text(tmp_path, fields, message):
  fields = {'form': MarkedCalls(), 'shown': 'text', **fields}
  with pytest.raises(ValueError, match=message):
    make_task(tmp_path, **fields)


def test_marks_are_checked():
  for fields in ({'opening': ''}, {'closing': ''}, {'result': '->'}):
    (name,) = fields
    with pytest.raises(ValueError, match=f'MarkedCalls.{name}'):
      MarkedCalls(**fields)


def test_prompts_of_marked_calls(tmp_path):
  """One sentence, or nothing where the task's prompt shows calls."""
  form = MarkedCalls('double', 'text', **BRACKETS)
  fields = {'form': form, 'functions': (double,)}
  task = make_task(tmp_path, shown='text', **fields)
  assert task.example('train', 0).messages[0]['content'] == (
    "Be brief.\n\nRepeats. Write '[', the text and '->' to end your turn; the "
    'result follows.'
  )
  task = make_task(tmp_path, shown='none', **fields)
  assert task.example('train', 0) == task.task.example('train', 0)
  one = task.make(task.example('train', 0))
  one.reset(0)
  assert one.step('So [ab ->').observation == ' abab]'


def test_a_conversation_calls_then_answers(tmp_path):
  """Calls are counted; the answer is judged."""
  task = make_task(tmp_path, shown='text')
  example = task.example('train', 0)
  one = task.make(example)
  assert one.reset(0).observation == ''
  reply = one.step('I compute ' + call('calculator', expression='12 * 13'))
  assert reply.observation == '<tool_response>\n156\n</tool_response>'
  assert reply.rewards == {'calls': 1.0, 'cost': 1.0}
  assert (reply.calls, reply.done) == (1, False)
  two = call('search', q='x') + '</tool_call>' + call('calculator')
  reply = one.step(two)
  assert reply.calls == 2
  assert "error: there is no tool 'search', only calculator" in (
    reply.observation
  )
  assert 'error: calculator: expression is missing' in reply.observation
  reply = one.step('The answer is 156.')
  assert reply.done and reply.rewards['outcome'] == 1.0
  at_once = task.make(example)
  at_once.reset(0)
  found = at_once.step('it is 156').rewards
  judged = task.task.reward(example, 'it is 156')
  assert found == {**judged, 'calls': 0.0, 'cost': 0.0}


def test_an_action_names_the_tools_that_it_calls():
  """Each once, and none that the task has not; also in a mixture."""
  action = ''.join(
    call(name) + '</tool_call>'
    for name in ('python', 'calculator', 'python', 'shell')
  )
  two, one = (
    WithTools(task=Arithmetic(), functions=functions, shown='text')
    for functions in (('calculator', 'python'), ('calculator',))
  )
  both = ('python', 'calculator')
  assert two.tools_in(two.example('train', 0), action) == both
  assert two.tools_in(two.example('train', 0), 'no call') == ()
  mixed = Mixture(parts=(MixturePart('two', two), MixturePart('one', one)))
  for task in (mixed, Several(mixed, ())):
    for index in range(8):
      example = task.example('train', index)
      expected = both if example.meta[PART] == 'two' else ('calculator',)
      assert task.tools_in(example, action) == expected
  plain = Arithmetic()
  assert plain.tools_in(plain.example('train', 0), action) == ()


def test_prompts_show_the_tools(tmp_path):
  """In the system message, or as a variable of the model's template."""
  shown = make_task(tmp_path, shown='text')
  example = shown.example('train', 0)
  assert example.messages[0]['content'].startswith('Be brief.\n\nYou may call')
  assert '"name": "calculator"' in example.messages[0]['content']
  assert [m['role'] for m in example.messages] == ['system', 'user']
  assert shown.traits.role == 'user' and not example.arguments
  task = make_task(tmp_path)
  assert task.traits.role == 'tool' and task.traits.chat
  tools = task.example('train', 0).arguments['tools']
  assert tools == [tool_functions.schema(calculator)]
  plain = QuestionAnswer(sources=task.task.sources)
  with pytest.raises(ValueError, match="WithTools.shown = 'template' needs"):
    WithTools(task=plain)
  example = WithTools(task=plain, shown='text').example('train', 0)
  assert example.parts[1] == '12 times 13?'
  assert example.prompt.endswith('Question: 12 times 13?\nAnswer:')
  with pytest.raises(ValueError, match='different names expected, got'):
    make_task(tmp_path, functions=('calculator', calculator))


def test_a_users_tool_runs_in_a_worker(tmp_path):
  """It is found again by file and hash; one that raises costs no episode."""
  (tmp_path / 'my_tools.py').write_text(WEATHER)
  task = make_task(tmp_path, functions=(f'{tmp_path}/my_tools.py:weather',))
  assert task.traits.needs_workers and task.code_modules == ('my_tools',)
  config = EvaluationConfig(sets=(EvaluationSet('own', task=task),))
  text = serialization.to_json(config)
  assert serialization.from_json(text) == config and 'sha256' in text
  example = task.example('train', 0)
  actions = (
    call('weather', city='Ulm', days=2),
    call('weather', city='nowhere'),
  )
  with SessionPool(task, 1) as pool:
    said = [
      pool.ask([Request((0, 0), example, 0, actions[:n])])[0].reply
      for n in range(3)
    ]
  assert said[1]['observation'] == '{"city": "Ulm", "fine": [true, true]}'
  assert said[2]['observation'] == "error: weather: KeyError: 'nowhere'"


def test_what_a_users_tool_draws_is_of_its_episode(tmp_path):
  """Two episodes of one process, whose calls alternate, and a later one."""
  (tmp_path / 'my_draws.py').write_text(DRAWS)
  task = make_task(tmp_path, functions=(f'{tmp_path}/my_draws.py:draw',))
  example, said = task.example('train', 0), []
  with SessionPool(task, 1) as pool:
    for number, rows in ((0, 2), (1, 1)):
      for turns in range(3):
        actions = (call('draw'),) * turns
        answers = pool.ask(
          [Request((number, row), example, 7, actions) for row in range(rows)]
        )
        said.append([answer.reply['observation'] for answer in answers])
  first, later = said[1:3], said[4:6]
  assert first == [[text] * 2 for (text,) in later]
  assert first[0] != first[1]


def _conversation(**fields):
  functions = ('calculator',)
  return WithTools(
    task=Arithmetic(digits=1), functions=functions, shown='text', **fields
  )


def test_built_in_tools_remember_nothing():
  """So that an episode continues in any process; yours say so themselves."""
  traits = _conversation(timeout_text='no answer').traits
  assert traits.stateless and traits.pure
  assert 'no answer' in traits.timeout_text
  whole = _conversation(rules=ToolRules(judged='episode')).traits
  assert not whole.stateless and not whole.pure
  own = 'rl_jax.tasks.environments.calculator_tool:calculator'
  for fields, stateless, pure in (
    ({}, False, False),
    ({'stateless': True}, True, False),
    ({'stateless': True, 'pure': ('calculator',)}, True, True),
    ({'pure': ('calculator',)}, False, False),
  ):
    traits = WithTools(
      task=Arithmetic(digits=1), functions=(own,), shown='text', **fields
    ).traits
    assert (traits.stateless, traits.pure) == (stateless, pure)


@pytest.mark.parametrize(
  ('fields', 'text'),
  [
    ({'pure': ('other',)}, r"WithTools.pure: \['other'\] are none of"),
    ({'stateless': False, 'timeout_text': 'x'}, 'needs stateless tools'),
    (
      {'rules': ToolRules(judged='episode'), 'timeout_text': 'x'},
      'needs stateless tools',
    ),
  ],
)
def test_what_a_turn_cannot_do_is_refused(fields, text):
  with pytest.raises(ValueError, match=text):
    _conversation(**fields)


def test_a_conversation_continues_in_another_process():
  """The answers are those without an interruption; calls count."""
  task = _conversation(rules=ToolRules(max_calls=1))
  example = dataclasses.replace(task.example('train', 0), prefill='x')
  call = '<tool_call>{"name": "calculator", "arguments": {"expression": "1"}}'
  actions = (f'{call}</tool_call>',) * 2
  whole, other = task.make(example), task.make(example)
  whole.reset(0)
  replies = [whole.step(action) for action in actions]
  other.continue_after(actions[:1])
  assert other.step(actions[1]) == replies[1]
  assert replies[1].done and not replies[0].done
