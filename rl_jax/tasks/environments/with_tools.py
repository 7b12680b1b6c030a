"""Any task of single responses, with tools that the policy may call first."""

from collections.abc import Callable
import dataclasses
import functools
import json
from typing import Any

from rl_jax import checks, user_modules
from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import (
  hidden_files,
  retriever,
  tool_functions,
  tool_makers,
  tool_rules,
)
from rl_jax.tasks.environments.base import Environment, Episodic, Reply
from rl_jax.tasks.environments.calculator_tool import calculator
from rl_jax.tasks.environments.fenced_calls import FencedCalls
from rl_jax.tasks.environments.marked_calls import MarkedCalls
from rl_jax.tasks.environments.tool_calls import JsonCalls
from rl_jax.tasks.environments.tool_rules import ToolRules
from rl_jax.tasks.templates import ChatTemplate
from rl_jax.verification import sandbox

BUILT_IN = {'calculator': calculator, 'python': tool_makers.python}
# Of a file or an address: 'sql:PATH'.
MADE = {
  'sql': tool_makers.sql,
  'search': tool_makers.search,
  'retrieve': retriever.retrieve,
}
CALLS, COST = 'calls', 'cost'  # components: how many, and their prices
MOST_CHARACTERS = 40_000  # of all results of a turn, less than of a reply
_MOST_OBSERVED, _MOST_INFO = 48_000, 18_000  # with marks; calls that are logged
_LEAST_SECONDS = 0.1  # that a call needs
_START_SECONDS = 1.0  # of a process, and its end


@dataclasses.dataclass(frozen=True)
@checked
class WithTools(Episodic):
  """The prompts of a task; a turn without a call is the answer to them.

    WithTools(task=QuestionAnswer(...), functions=('calculator',))

  functions: 'calculator', 'python' (in the sandbox, where files of the task
    cannot be read), 'sql:FILE' (a database of SQLite), 'search:FILE' (texts in
    JSONL, by BM25, extra 'search'), or
    'PATH.py:NAME', 'MODULE:NAME' or a function with typed arguments and a
    docstring (see tool_functions.schema). If its first argument has the type
    Example, it gets that of the episode there.
  prices: of a call, by the tool's name; others cost 1.
  shown: 'template' gives the schemas to the model's chat template as its
    variable `tools`, and results have the role `tool`; 'text' writes them into
    the system message (or before a plain prompt), for models whose template
    knows no tools or another form of calls, which is an error; 'none' adds
    nothing: the task's own prompt shows calls.
  form: of calls in the text of a turn, JsonCalls, MarkedCalls or FencedCalls.
  rules: see ToolRules, when the conversation ends and what is judged.
  deterministic: False if a tool may answer the same call in another way, see
    EnvironmentTask.
  turn_seconds: that all calls of a turn may take. 'python', 'sql' and tools of
    MCP end then, later calls are answered 'no time left'; a function of yours
    cannot be ended (see verifier.on_turn_timeout). At most
    verifier.timeout_seconds, which ends a turn in any case. What a tool starts
    once in its process, as a server of MCP, does not count.
  stateless: whether no tool remembers anything from one call to the next, so
    that an episode continues in any process without making its calls again;
    null: if none is yours.
  pure: names of your tools that change nothing and always answer a call in the
    same way, as all of the others do. If all are, and none remembers, a turn
    that takes twice the mean is asked for a second time.
  timeout_text: what the policy reads as the result of a turn that took too
    long, if the tools are stateless; '': verifier.on_turn_timeout says how it
    ends.
  limits, require: of the sandbox of 'python', see PythonFunction.
  workers: 'thread' makes the turns of many episodes in one process at the same
    time, each in a thread, as for tools of MCP or of the network, which wait:
    a process then has one server for all of them. Your tools, and the task's
    reward, must allow that; what they draw from global generators is nobody's.
    'python' and 'sql' need 'process', in which turns are made one by one.

  A call that fails is answered with what is wrong, and so are all calls of a
  turn whose results have more than 40,000 characters. `info` has the calls that
  the log has room for. Components: those of the task's reward of the last turn,
  `calls`, and `cost`, the sum of their prices, which reward_weights may count.
  An episode that ends at a limit before its answer has 0 in the others.
  """

  task: Any
  functions: tuple[Any, ...] = ('calculator',)
  prices: dict[str, float] = dataclasses.field(default_factory=dict, hash=False)
  shown: str = chosen('template', ('template', 'text', 'none'))
  form: JsonCalls | MarkedCalls | FencedCalls = JsonCalls()
  rules: ToolRules = ToolRules()
  reward_weights: dict[str, float] = base.outcome_only()
  deterministic: bool = True
  turn_seconds: float = ranged(6.0, 0.0, open_low=True)
  stateless: bool | None = None
  pure: tuple[str, ...] = ()
  timeout_text: str = ''
  limits: sandbox.Limits = sandbox.Limits()
  require: tuple[str, ...] = sandbox.SAFE
  workers: str = chosen('process', ('process', 'thread'))

  def __post_init__(self):
    base.require(self.task, 'WithTools.task')
    named = []
    for one in self.functions:
      named.append(one if _is_own(one) else user_modules.reference(one))
    object.__setattr__(self, 'functions', tuple(named))
    names = [_name(reference) for reference in named]
    if not names or len(set(names)) < len(names):
      raise ValueError(
        f'WithTools.functions: different names expected, got {names}'
      )
    unknown = sorted(set(self.prices) - set(names))
    if unknown:
      raise ValueError(f'WithTools.prices: {unknown} are none of {names}')
    if unknown := sorted(set(self.pure) - set(names)):
      raise ValueError(f'WithTools.pure: {unknown} are none of {names}')
    if self.timeout_text and not self._forgets:
      raise ValueError(
        'WithTools.timeout_text needs stateless tools, and rules that judge '
        'the last turn: a turn that was ended cannot be repeated'
      )
    self._check_workers()
    self.form.instructions(self._schemas)  # or it says what is wrong
    if self.shown == 'template' and not self.form.template_mark:
      raise ValueError(
        "WithTools.shown = 'template': chat templates describe calls in JSON, "
        f"not {type(self.form).__name__}: set it to 'text' or 'none'"
      )
    if self.shown == 'template' and not self._chat:
      raise ValueError(
        "WithTools.shown = 'template' needs a task with a ChatTemplate: set it "
        "to 'text', or task.template"
      )

  def _check_workers(self):
    """Raises ValueError for tools that cannot share a process."""
    makers = [str(one).partition(':')[0] for one in self.functions]
    alone = [name for name in ('python', 'sql') if name in makers]
    if self.workers == 'thread' and alone:
      raise ValueError(
        f"WithTools.workers = 'thread' with {alone} in WithTools.functions: "
        "these tools need processes that nobody shares; set it to 'process'"
      )

  def __getstate__(self) -> dict[str, Any]:
    """The fields: tools are made again in a worker."""
    return checks.values(self)

  @property
  def traits(self) -> TaskTraits:
    """Functions of the user may not end; queries and code take time.

    `reward_seconds` is that of the task's reward, or of all calls of a turn if
    they take longer.
    """
    inner = self.task.traits
    seconds = inner.reward_seconds
    if any(_is_own(x) and x != 'calculator' for x in self.functions):
      seconds = max(seconds, self.turn_seconds + _START_SECONDS)
    slow = any(x != 'calculator' for x in self.functions)
    return TaskTraits(
      chat=self._chat,
      role='tool' if self._templated else 'user',
      arguments=self._arguments,
      call_mark=self.form.template_mark if self._templated else '',
      deterministic=self.deterministic,
      stateless=self._forgets,
      pure=self._forgets and self.deterministic and self._is_pure,
      timeout_text=self._timeout_text,
      workers=self.workers,
      global_random=self.workers == 'process',
      needs_workers=slow or inner.needs_workers,
      reward_seconds=seconds,
      turn_seconds=self.turn_seconds if slow else 0.0,
      clusters=inner.clusters,
    )

  @property
  def _forgets(self):
    """Returns whether a step depends on its own action only."""
    if self.rules.judged == 'episode':  # a conversation remembers
      return False
    if self.stateless is not None:
      return self.stateless
    return all(map(_is_own, self.functions))

  @property
  def _is_pure(self):
    return all(_is_own(x) or _name(x) in self.pure for x in self.functions)

  @property
  def _timeout_text(self):
    if not self.timeout_text:
      return ''
    return self.form.results([self.timeout_text], wrapped=not self._templated)

  @property
  def _chat(self):
    return isinstance(self.task.template, ChatTemplate)

  @property
  def _templated(self):
    """Returns whether the chat template describes the tools."""
    return self.shown == 'template'

  @property
  def _arguments(self):
    """Variables of the chat template."""
    own = dict(self.task.template.arguments) if self._chat else {}
    return own | ({'tools': self._schemas} if self._templated else {})

  @property
  def code_modules(self) -> tuple[str, ...]:
    """Modules of the functions; experiment.json records their files."""
    own = [x for x in self.functions if not _is_own(x)]
    return tuple(reference.split(':')[0] for reference in own)

  def num_prompts(self, split: str) -> int:
    return self.task.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """The task's example, with the tools."""
    example = self.task.example(split, index)
    if self._templated:
      return dataclasses.replace(example, arguments=self._arguments)
    if self.shown == 'none':
      return example
    text = self.form.instructions(self._schemas)
    if not example.messages:
      parts = example.parts or ('', example.prompt)
      parts = (f'{text}\n\n{parts[0]}', *parts[1:])
      return dataclasses.replace(example, prompt=''.join(parts), parts=parts)
    first, *rest = example.messages
    if first['role'] == 'system':
      text = f'{first["content"]}\n\n{text}'
    else:
      rest = example.messages
    messages = ({'role': 'system', 'content': text}, *rest)
    return dataclasses.replace(example, messages=messages)

  def target(self, example: Example) -> str:
    """The task's target: an answer without calls."""
    return self.task.target(example)

  def prepare(self) -> None:
    """Prepares the task; the functions are known since the checks above.

    Raises: RuntimeError if 'python' lacks a required layer of the sandbox, or a
      package; ConnectionError naming a retriever that does not answer.
    """
    if 'python' in self.functions:
      report = sandbox.run_calls('', '', [], self.limits, self._hidden)
      layers = self.limits.layers
      sandbox.check_required('WithTools', report, layers, self.require)
      sandbox.check_packages('WithTools.limits', self.limits)
    for one in self.functions:
      if isinstance(one, str) and one.startswith('retrieve:'):
        retriever.check(one.removeprefix('retrieve:'))
    self.task.prepare()

  def tools_in(self, example: Example, action: str) -> tuple[str, ...]:
    """The tools that the calls of an action name."""
    del example
    named = dict.fromkeys(call.name for call in self.form.calls_in(action))
    return tuple(name for name in named if name in self._tools)

  def make(self, example: Example) -> 'Conversation':
    """One conversation about the example."""
    return Conversation(self, example)

  def start_tools(self) -> None:
    """Starts in this process what calls of the tools need."""
    for function in self._tools.values():
      tool_functions.start(function)

  @functools.cached_property
  def _tools(self) -> dict[str, Callable]:
    return {_name(one): self._function(one) for one in self.functions}

  @functools.cached_property
  def _hidden(self) -> list[str]:
    return hidden_files.files_of(self)

  def _function(self, reference):
    made, _, file = reference.partition(':')
    if made in MADE and file:
      return MADE[made](file)
    if reference == 'python':
      return tool_makers.python_hiding(self._hidden, self.limits)
    return BUILT_IN.get(reference) or user_modules.resolve(reference)

  @functools.cached_property
  def _schemas(self) -> list[dict[str, Any]]:
    return [tool_functions.schema(one) for one in self._tools.values()]


def _is_own(reference):
  return isinstance(reference, str) and (
    reference in BUILT_IN or reference.partition(':')[0] in MADE
  )


def _name(reference):
  made, _, file = reference.partition(':')
  return made if made in MADE and file else reference.split(':')[-1]


class Conversation(Environment):
  """Turns with calls, then one without: the answer."""

  def __init__(self, task: WithTools, example: Example):
    self._task, self._example = task, example
    self._said: list[str] = []  # what the task's reward judges, if it is all
    self._turns_with_calls = 0

  def reset(self, seed: int) -> Reply:
    """The prompt says everything; the tools start what they need."""
    del seed
    self._task.start_tools()
    return Reply()

  def step(self, action: str) -> Reply:
    """The results of the calls, or the reward of the answer."""
    rules = self._task.rules
    calls = self._task.form.calls_in(action)
    self._say(action)
    if rules.is_answer(action, len(calls), self._turns_with_calls):
      return Reply(rewards={**self._judged(), CALLS: 0.0, COST: 0.0}, done=True)
    if not calls:
      self._heard(rules.no_call)
      return Reply(rules.no_call, rewards={CALLS: 0.0, COST: 0.0})
    self._turns_with_calls += 1
    self._task.start_tools()  # in another process than that of the reset
    with tool_functions.limited(self._task.turn_seconds):
      texts = [rules.shown(self._result(call)) for call in calls]
    size = sum(map(len, texts))
    if size > MOST_CHARACTERS:
      problem = f'{size} characters, more than {MOST_CHARACTERS}'
      texts = [f'error: the results have {problem}' for _ in texts]
    observed = self._observed(texts)
    if len(observed) > _MOST_OBSERVED:
      observed = self._observed([f'error: {len(calls)} calls are too many'])
    cost = sum(self._task.prices.get(call.name, 1.0) for call in calls)
    rewards = {CALLS: float(len(calls)), COST: float(cost)}
    info = {'calls': _recorded(calls)}
    done = any(tool_rules.has_one(text, rules.result_ends) for text in texts)
    if done:
      self._said.append(observed)
      rewards = {**self._judged(), **rewards}
    self._heard(observed)
    return Reply(
      '' if done else observed,
      rewards=rewards,
      done=done,
      calls=len(calls),
      info=info,
    )

  def _say(self, action):
    """Notes a turn of the policy."""
    if self._task.rules.judged == 'turn':
      self._said = []
    self._said.append(action)

  def _heard(self, observed):
    """Notes what is said to the policy."""
    if self._task.rules.judged == 'episode':
      self._said.append(observed)
    else:
      # What opened the first turn is not a part of a later one.
      self._example = dataclasses.replace(self._example, prefill='')

  def _judged(self):
    """Rewards by the task of the last turn, or of all that was said."""
    return self._task.task.reward(self._example, ''.join(self._said))

  def continue_after(self, actions: tuple[str, ...]) -> None:
    """Counts turns with calls; a later turn is not opened as the first one."""
    calls = [bool(self._task.form.calls_in(action)) for action in actions]
    self._turns_with_calls = sum(calls)
    if actions:
      self._example = dataclasses.replace(self._example, prefill='')

  def _observed(self, texts):
    wrapped = self._task.shown != 'template'
    return self._task.form.results(texts, wrapped=wrapped)

  def _result(self, call):
    if call.error:
      return f'error: {call.error}'
    function = self._task._tools.get(call.name)
    if function is None:
      names = ', '.join(self._task._tools)
      return f'error: there is no tool {call.name!r:.80}, only {names}'
    if tool_functions.time_left() < _LEAST_SECONDS:
      most = self._task.turn_seconds
      return f'error: no time left: all calls of a turn have {most:g} seconds'
    try:
      return tool_functions.call(function, call.arguments, self._example)
    except tool_functions.ToolError as error:
      return f'error: {error}'


def _recorded(calls):
  """The first calls, as many as the log has room for."""
  found, left = [], _MOST_INFO
  for call in calls:
    left -= len(json.dumps(vars(call))) + 2
    if left < 0:
      break
    found.append(vars(call))
  return found
