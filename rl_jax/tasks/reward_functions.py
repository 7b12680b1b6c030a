"""Any task, judged by functions of the user."""

import dataclasses
from typing import Any

from rl_jax import checks, user_modules
from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, reward_forms, wrapped
from rl_jax.tasks.base import Example
from rl_jax.tasks.preference_rows import PreferenceRows
from rl_jax.tasks.prompt_response import PromptResponse
from rl_jax.tasks.question_answer import QuestionAnswer
from rl_jax.tasks.reward_forms import Form, Judged, JudgingFunction
from rl_jax.tasks.rows import ALL_COLUMNS

_OF_ROWS = (PreferenceRows, PromptResponse, QuestionAnswer)


class NotApplicableError(ValueError):
  """All functions returned None: nothing says what the response is worth."""


@dataclasses.dataclass(frozen=True)
@checked
class RewardFunctions(wrapped.Wrapped):
  """The prompts of a task, rewarded by functions of a file or module:

    RewardFunctions(task=Arithmetic(), functions={'my_file.py:short': 0.5})

  reward = task_weight * (the task's own reward) + sum_k weight_k * f_k

  A function takes (example, response), the text before the end token, and
  returns a number, or a dict of numbers: `reward` is what counts, the others
  are measured as NAME/KEY, and `outcome` replaces the task's (what evaluation
  counts as solved). Functions in the forms of TRL and verl are taken as they
  are, see `reward_forms`. Where one of TRL's returns None, its reward is 0 and
  NAME/not_applicable 1; a sample to which no function applies leaves its group,
  unless the task's own reward counts. The components are those of the task, and
  each function's reward by the function's name. A call that fails costs its own
  sample. Data keep all fields of their rows for the functions, in
  example.meta['columns'], unless `columns` of their task says which.

  functions: {'PATH.py:NAME', 'MODULE:NAME' or a function: its weight}.

  Raises: ValueError for what is not there, takes other arguments, cannot be
    found again by its name, or has the name of another component.
  """

  not_passed = ('reward_device', 'device_answers')

  task: Any
  functions: dict[Any, float] = dataclasses.field(hash=False)
  task_weight: float = ranged(0.0)

  def __post_init__(self):
    super().__post_init__()
    if not self.functions:
      raise ValueError('RewardFunctions.functions is empty')
    found = {}
    for function, weight in self.functions.items():
      reference = user_modules.reference(function)
      _judging(reference)  # or it says what is wrong
      found[reference] = float(weight)
    object.__setattr__(self, 'functions', found)
    object.__setattr__(self, '_inner', _with_columns(self.task))
    names = [_name(reference) for reference in found]
    taken = {base.OUTCOME, *self.task.reward_weights}
    for name in names:
      if names.count(name) > 1 or name in taken:
        raise ValueError(
          f'RewardFunctions.functions: two components are named {name!r}'
        )

  @property
  def inner(self) -> Any:
    """The task, whose data keep the fields of their rows for the functions."""
    return self._inner

  @property
  def code_modules(self) -> tuple[str, ...]:
    """Modules of the functions; experiment.json records their files."""
    return tuple(reference.split(':')[0] for reference in self.functions)

  @property
  def reward_weights(self) -> dict[str, float]:
    """The weights of the functions, and the task's times task_weight."""
    own = {
      name: self.task_weight * weight
      for name, weight in self.task.reward_weights.items()
    }
    return own | {_name(key): value for key, value in self.functions.items()}

  def prepare(self) -> None:
    """Imports the functions once, before workers are forked."""
    for reference in self.functions:
      user_modules.resolve(reference)
    self.inner.prepare()

  @property
  def has_foreign(self) -> bool:
    """Returns whether a function has the form of another library."""
    return any(_judging(x).form is not Form.OURS for x in self.functions)

  def check_columns(self, split: str) -> None:
    """Raises ValueError for a column that a function needs and no row has.

    Rows are 100 prompts of the split, from all of its parts.
    """
    needed = {name: _judging(name).columns for name in self.functions}
    if not any(needed.values()):
      return
    count = self.inner.num_prompts(split)
    found = set()
    for index in range(0, count, max(1, count // 100)):
      meta = self.inner.example(split, index).meta
      found |= set(meta.get(base.COLUMNS, ()))
    for reference, names in needed.items():
      missing = [name for name in names if name not in found]
      if missing and count:
        raise ValueError(
          f'{reference} needs the columns {missing}, but rows have '
          f'{sorted(found) or "none"}: {reward_forms.WANTED}'
        )

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Components of the task and of the functions."""
    found = dict(self.inner.reward(example, response))
    judged, applies = {}, bool(self.task_weight)
    for reference in self.functions:
      value = _judging(reference).judge(example, response)
      applies = applies or value.reward is not None
      for key, number in _components(reference, value).items():
        if key in judged or (key in found and key != base.OUTCOME):
          raise ValueError(f'{reference}: another component is named {key!r}')
        judged[key] = number
    if not applies:
      raise NotApplicableError(
        f'{", ".join(self.functions)}: no function applies to this response'
      )
    return found | judged


def _judging(reference: str) -> JudgingFunction:
  return JudgingFunction(reference, user_modules.resolve(reference))


def _with_columns(value: Any) -> Any:
  """A task, where data keep all columns unless `columns` says otherwise."""
  if isinstance(value, tuple):
    parts = tuple(map(_with_columns, value))
    same = all(new is old for new, old in zip(parts, value, strict=True))
    return value if same else parts
  if not dataclasses.is_dataclass(value) or isinstance(value, RewardFunctions):
    return value
  if isinstance(value, _OF_ROWS):
    kept = ALL_COLUMNS if value.columns is None else value.columns
    return dataclasses.replace(value, columns=kept)
  given = {field.name for field in dataclasses.fields(value) if field.init}
  changes = {
    name: new
    for name, old in checks.values(value).items()
    if name in given and (new := _with_columns(old)) is not old
  }
  return dataclasses.replace(value, **changes) if changes else value


def _components(reference: str, judged: Judged) -> dict[str, Any]:
  """{name: reward, name/key: what else was measured}."""
  name = _name(reference)
  if judged.reward is None:
    return {name: 0.0, f'{name}/not_applicable': 1.0}
  more = {
    key if key == base.OUTCOME else f'{name}/{key}': number
    for key, number in judged.more.items()
  }
  return {name: judged.reward, **more}


def _name(reference):
  return reference.split(':')[1]
