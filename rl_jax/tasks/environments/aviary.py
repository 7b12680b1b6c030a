"""Environments of Aviary: tools that belong to the world of an episode."""

import asyncio
import dataclasses
import functools
import json
import os
import string
import threading
from typing import Any

from rl_jax import user_modules
from rl_jax.checks import checked, chosen
from rl_jax.tasks import answers, base
from rl_jax.tasks.base import SPLITS, Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply
from rl_jax.tasks.environments.tool_calls import JsonCalls

_FORM = JsonCalls()


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Aviary(EnvironmentTask):
  """Episodes of the environments of a data set `TaskDataset`.

    Aviary(dataset='my_worlds.py:MyDataset', options={'level': 2})

  dataset: a name that Aviary knows, as 'dummy', or a class of yours by
    'PATH.py:NAME' or 'MODULE:NAME', which is called with `options`. The first
    `num_train` environments are the split train, then come validation and test;
    of a data set without a length every episode is a new one.
  shown: 'text' describes the tools before the first messages; 'none' does not,
    for policies that have learned them.
  answer_tool: the tool whose arguments are the answer. Adds the component
    `cluster_id`, equal for equal answers and -1 without one: votes of samples
    count by it, and methods that compare the answers of a group.
  alphabet: for a character tokenizer, or a tuple of words and other pieces; all
    texts of the episodes are made of it.

  Calls have the form of `JsonCalls`; a turn with one that cannot be read is
  answered with what is wrong. Components: `reward` of the environment,
  `outcome` 1 if an episode ends with a sum of `solved` at least, `invalid` such
  turns.
  Source: "Aviary: training language agents on challenging scientific tasks".
  Needs the extra 'aviary'.
  """

  dataset: Any = 'dummy'
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  solved: float = 1.0
  shown: str = chosen('text', ('text', 'none'))
  answer_tool: str = ''
  alphabet: str | tuple[str, ...] = string.printable
  chat: bool = False
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  def __post_init__(self):
    if not isinstance(self.dataset, str) or ':' in self.dataset:
      object.__setattr__(self, 'dataset', user_modules.reference(self.dataset))

  @property
  def traits(self) -> TaskTraits:
    """`chat` is a field."""
    return TaskTraits(chat=self.chat)

  @property
  def code_modules(self) -> tuple[str, ...]:
    """The module of the data set; experiment.json records its file."""
    module, found, _ = self.dataset.partition(':')
    return (module,) if found else ()

  def prepare(self) -> None:
    """Imports the package once and makes the data set, to check it."""
    _package()
    self.environment(self.example('train', 0))

  def example(self, split: str, index: int) -> Example:
    """The environment of that index."""
    example = super().example(split, index)
    first = sum(map(self.num_prompts, SPLITS[: SPLITS.index(split)]))
    meta = {**example.meta, 'place': first + index}
    return dataclasses.replace(example, meta=meta)

  def environment(self, example: Example) -> Any:
    """A new one of Aviary; ValueError if the data set is too short."""
    data = _data(self.dataset, json.dumps(self.options, sort_keys=True))
    try:
      count = len(data)
    except TypeError:  # it has no length
      return data.get_new_env()
    if count < sum(map(self.num_prompts, SPLITS)):
      raise ValueError(
        f'Aviary: {self.dataset} has {count} environments, less than num_train '
        f'= {self.num_train} and twice num_held_out = {self.num_held_out}'
      )
    return data.get_new_env_by_idx(example.meta['place'])

  def make(self, example: Example) -> 'AviaryEpisode':
    """An episode that has not started."""
    return AviaryEpisode(self, example)


class AviaryEpisode(Environment):
  """An episode of the data set's environment; tools run in its loop."""

  def __init__(self, task: Aviary, example: Example):
    self._task, self._total = task, 0.0
    self._cluster: float | None = None
    self._world = task.environment(example)

  def reset(self, seed: int) -> Reply:
    """The tools and the first messages."""
    del seed  # the environment is that of the example
    messages, tools = _wait(self._world.reset())
    if self._task.shown == 'none':
      return Reply(_observed(messages))
    schemas = [tool.model_dump(mode='json', by_alias=True) for tool in tools]
    return Reply(f'{_FORM.instructions(schemas)}\n\n{_observed(messages)}')

  def step(self, action: str) -> Reply:
    """Returns what the tools answer."""
    calls, core = _FORM.calls_in(action), _package().core
    readable = [isinstance(x.arguments, dict) and not x.error for x in calls]
    if not all(readable):
      wrong = calls[readable.index(False)].error or 'arguments are no object'
      zero = {base.OUTCOME: 0.0, 'reward': 0.0, 'invalid': 1.0}
      return Reply(f'error: {wrong}\n', rewards=zero | self._answered(()))
    said = core.Message(role='assistant', content=action)
    if calls:
      parts = [{'name': x.name, 'arguments': x.arguments} for x in calls]
      made = [core.ToolCall(id=str(n), function=x) for n, x in enumerate(parts)]
      said = core.ToolRequestMessage(content=action, tool_calls=made)
    messages, reward, done, truncated = _wait(self._world.step(said))
    self._total += float(reward)
    solved = float(bool(done) and self._total >= self._task.solved)
    found = {base.OUTCOME: solved, 'reward': float(reward), 'invalid': 0.0}
    found |= self._answered(calls)
    cut, observed = bool(truncated) and not done, _observed(messages)
    return Reply(
      observed, found, done=bool(done), truncated=cut, calls=len(calls)
    )

  def close(self) -> None:
    """Ends the environment."""
    _wait(self._world.close())

  def _answered(self, calls):
    """Returns how `cluster_id` changes: rewards of the turns are summed up."""
    if not self._task.answer_tool:
      return {}
    before = now = self._cluster
    if now is None:
      now = answers.cluster_id(None)
    for one in calls:
      if one.name == self._task.answer_tool:
        now = answers.cluster_id(_normal(one.arguments))
    self._cluster = now
    return {'cluster_id': now - (before or 0.0)}


@functools.cache
def _loop(process):
  """The loop of a process: one for each episode would open three files each."""
  del process
  return asyncio.new_event_loop(), threading.Lock()


def _wait(coroutine):
  loop, lock = _loop(os.getpid())
  with lock:
    return loop.run_until_complete(coroutine)


def _normal(arguments):
  """A text that equal answers share; of a number its value."""
  if len(arguments) == 1:
    (value,) = arguments.values()
    return answers.normal_form(str(value), 'number')
  return json.dumps(arguments, sort_keys=True)


@functools.cache
def _data(name, options):
  core, options = _package().core, json.loads(options)
  if ':' in name:
    return user_modules.resolve(name)(**options)
  return core.TaskDataset.from_name(name, **options)


def _observed(messages):
  pairs = [(x.content or '', hasattr(x, 'tool_call_id')) for x in messages]
  return ''.join(f'{_FORM.results([text], tool)}\n' for text, tool in pairs)


def _package():
  try:
    import aviary.core
  except ImportError as error:
    raise ImportError(
      "Aviary needs the extra 'aviary': pip install 'rl_jax[aviary]'"
    ) from error
  return aviary
