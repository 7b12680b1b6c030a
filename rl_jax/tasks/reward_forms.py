"""Forms of reward functions, by their parameters: ours, TRL's and verl's.

  ours   (example, response) -> a number, or a dict of numbers with `reward`
  TRL    (prompts, completions, **columns) -> a list with a number for each
         completion, None where the function does not apply
  verl   (data_source, solution_str, ground_truth, extra_info) -> a number, or
         a dict with `score`; or the plurals of these names, lists -> a list

Functions of the other libraries are called by name, with what their parameters
name, and lists have one element: a call judges one response. Columns are the
fields of the data's row but `prompt` and `completion`. Where the prompt is a
conversation, TRL's `prompts` are its turns and a completion is the assistant's
turn, a list of one message; else they are texts. A response includes the
prefill of its prompt. verl's `ground_truth` is that of the field
`reward_model`, or else the right answer as the task has it; `data_source` is ''
where rows have none. Functions may be `async`.
"""

import asyncio
from collections.abc import Callable, Mapping
import dataclasses
import enum
import functools
import inspect
import threading
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example

WANTED = (
  'expected (example, response), which returns a number or a dict of numbers; '
  "TRL's form (prompts, completions, **columns), which returns a list; or "
  "verl's (data_source, solution_str, ground_truth, extra_info), which returns "
  'a number or a dict with `score`'
)
_OF_TRL = ('prompts', 'completions')
# What TRL passes and is not known here, where rewards are computed from texts.
_OF_TRAINER = (
  'completion_ids',
  'environments',
  'log_extra',
  'log_metric',
  'trainer_state',
)
_NOT_COLUMNS = ('prompt', 'completion', 'completion_ids')
_OF_VERL = ('data_source', 'solution_str', 'ground_truth', 'extra_info')
_PLURALS = tuple(f'{name}s' for name in _OF_VERL)
_Kind = inspect.Parameter


class Form(enum.Enum):
  """The library whose parameters a function has."""

  OURS = 'ours'
  TRL = 'TRL'
  VERL = 'verl'
  VERL_LISTS = 'verl, lists'


@dataclasses.dataclass(frozen=True)
class Judged:
  """The judgement of a function on a response.

  reward: None where the function does not apply. more: what else it measured.
  """

  reward: Any
  more: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class JudgingFunction:
  """A function of one of the forms; messages call it `name`.

  Raises: ValueError if it has none of the forms, or needs what is not known.
  """

  name: str
  function: Callable[..., Any]

  def __post_init__(self):
    call = type(self.function).__call__  # of an object
    for one in (self.function, call):
      if inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one):
        raise ValueError(f'{self.name} is a generator: {WANTED}')
    if self.form is Form.OURS:
      self._check_ours()
      return
    unknown = self._unknown()
    if unknown:
      raise ValueError(
        f'{self.name} needs {", ".join(unknown)}, which is not known where '
        f'rewards are computed, from texts: {WANTED}'
      )

  @functools.cached_property
  def form(self) -> Form:
    """The form, by the names of the parameters."""
    names = self._parameters
    if 'solution_strs' in names:
      return Form.VERL_LISTS
    if 'solution_str' in names:
      return Form.VERL
    keywords = names and all(
      one.kind is _Kind.VAR_KEYWORD for one in names.values()
    )
    of_trl = any(name in names for name in (*_OF_TRL, 'completion_ids'))
    return Form.TRL if keywords or of_trl else Form.OURS

  @property
  def columns(self) -> list[str]:
    """The columns that a function of TRL's form cannot do without."""
    if self.form is not Form.TRL:
      return []
    return [name for name in self._needed if name not in _OF_TRL]

  def judge(self, example: Example, response: str) -> Judged:
    """Calls the function.

    Raises: ValueError if the result does not have the shape of the form.
    """
    if self.form is Form.OURS:
      return self._ours(_awaited(self.function(example, response)))
    if self.form is Form.TRL:
      return self._trl(self._called(self._trl_arguments(example, response)))
    arguments = _verl_arguments(example, response)
    if self.form is Form.VERL:
      return self._verl(self._called(arguments))
    lists = {f'{name}s': [value] for name, value in arguments.items()}
    return self._verl(self._only(self._called(lists)))

  @functools.cached_property
  def _parameters(self) -> Mapping[str, inspect.Parameter]:
    try:
      return inspect.signature(self.function).parameters
    except ValueError:  # a builtin without a signature
      return {}

  @property
  def _needed(self) -> list[str]:
    """The parameters without a default."""
    several = (_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD)
    return [
      name
      for name, one in self._parameters.items()
      if one.kind not in several and one.default is _Kind.empty
    ]

  def _check_ours(self):
    if not self._parameters:
      return
    try:
      inspect.signature(self.function).bind(None, '')
    except TypeError as error:
      raise ValueError(
        f'{self.name} cannot be called as (example, response): {error}; '
        f'{WANTED}'
      ) from None

  def _unknown(self):
    """Needed parameters that cannot be given."""
    if self.form is Form.TRL:
      return [name for name in self._needed if name in _OF_TRAINER]
    known = _OF_VERL if self.form is Form.VERL else _PLURALS
    return [name for name in self._needed if name not in known]

  def _called(self, arguments: Mapping[str, Any]) -> Any:
    """The result for those of the arguments that the parameters name."""
    kinds = [one.kind for one in self._parameters.values()]
    if _Kind.VAR_KEYWORD not in kinds:
      names = self._parameters
      arguments = {k: x for k, x in arguments.items() if k in names}
    return _awaited(self.function(**arguments))

  def _trl_arguments(self, example, response):
    text = example.prefill + response
    columns = example.meta.get(base.COLUMNS, {})
    # Rows of JSONL may lack a field that others have; it is null in TRL's.
    found = dict.fromkeys(self.columns, [None])
    found |= {k: [x] for k, x in columns.items() if k not in _NOT_COLUMNS}
    if not example.messages:
      return {**found, 'prompts': [example.prompt], 'completions': [text]}
    turn = {'role': 'assistant', 'content': text}
    turns = [dict(message) for message in example.messages]
    return {**found, 'prompts': [turns], 'completions': [[turn]]}

  def _ours(self, value) -> Judged:
    if not isinstance(value, Mapping):
      return Judged(self._number(value, 'reward'))
    if 'reward' not in value:
      raise ValueError(
        f"{self.name} returned a dict without 'reward': {value!r}"
      )
    found = {key: self._number(x, key) for key, x in value.items()}
    return Judged(found.pop('reward'), found)

  def _trl(self, value) -> Judged:
    reward = self._only(value)
    return Judged(None if reward is None else self._number(reward, 'reward'))

  def _verl(self, value) -> Judged:
    """Judges a number or a dict, of which `acc` counts; texts are dropped."""
    if not isinstance(value, Mapping):
      return Judged(self._number(value, 'score'))
    if 'score' not in value:
      raise ValueError(
        f"{self.name} returned a dict without 'score': {value!r}"
      )
    more = {
      base.OUTCOME if key == 'acc' else key: number
      for key, number in value.items()
      if key != 'score' and _is_number(number)
    }
    return Judged(self._number(value['score'], 'score'), more)

  def _only(self, value):
    """The one element of a result."""
    try:
      if isinstance(value, (str, Mapping)):
        raise TypeError
      values = list(value)
    except TypeError:
      raise ValueError(
        f'{self.name} returned {type(value).__name__}: expected a list with '
        'one reward for each response'
      ) from None
    if len(values) != 1:
      raise ValueError(
        f'{self.name} returned {len(values)} rewards for one response'
      )
    return values[0]

  def _number(self, value, key):
    if not _is_number(value):
      raise ValueError(
        f'{self.name} returned {type(value).__name__} as {key}: expected a '
        'number'
      )
    return value


def _verl_arguments(example: Example, response: str) -> dict[str, Any]:
  columns = example.meta.get(base.COLUMNS, {})
  rewarded = columns.get('reward_model')
  if not isinstance(rewarded, Mapping):
    rewarded = {}
  return {
    'data_source': columns.get('data_source', ''),
    'solution_str': example.prefill + response,
    'ground_truth': rewarded.get('ground_truth', example.answer),
    'extra_info': dict(columns.get('extra_info') or {}),
  }


def _is_number(value):
  return not isinstance(value, str) and hasattr(value, '__float__')


class _Loops(threading.local):
  """The event loop of this thread, which clients of a function may keep."""

  loop: asyncio.AbstractEventLoop | None = None


_LOOPS = _Loops()


def _awaited(value: Any) -> Any:
  """The result of a function, also of an `async` one."""
  if not inspect.isawaitable(value):
    return value
  if _LOOPS.loop is None:
    _LOOPS.loop = asyncio.new_event_loop()

  async def wait():
    return await value

  return _LOOPS.loop.run_until_complete(wait())
