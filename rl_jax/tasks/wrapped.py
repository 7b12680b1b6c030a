"""Tasks that change something of another task."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any, ClassVar

from rl_jax.tasks import base
from rl_jax.tasks.base import Example, RecordedResponse, Task, TaskTraits
from rl_jax.tasks.episodes import DeviceReply, Environment


def with_letters(
  alphabet: str | tuple[str, ...] | None, more: str
) -> str | tuple[str, ...] | None:
  """An alphabet of characters with more, each once; another one as it is."""
  if not isinstance(alphabet, str):
    return alphabet
  return ''.join(dict.fromkeys(alphabet + more))


@dataclasses.dataclass(frozen=True)
class Wrapped(Task, is_base=True):
  """Base of a task on another one, its field `task`.

  Everything that the class does not define is that of the task, but for the
  optional methods in `not_passed`. A class that changes traits writes

    @property
    def traits(self):
      return dataclasses.replace(super().traits, rewrites=True)
  """

  task: Any

  not_passed: ClassVar[tuple[str, ...]] = ()

  def __post_init__(self):
    base.require(self.task, f'{type(self).__name__}.task')

  @property
  def inner(self) -> Task:
    """Returns what members are taken of: the task, or how a class reads its
    data.
    """
    return self.task

  @property
  def traits(self) -> TaskTraits:
    return self.inner.traits

  @property
  def reward_weights(self) -> Mapping[str, float]:
    return self.inner.reward_weights

  @property
  def alphabet(self) -> str | tuple[str, ...] | None:
    return self.inner.alphabet

  @property
  def template(self) -> Any:
    return self.inner.template

  @property
  def num_recorded(self) -> int:
    return self.inner.num_recorded

  @property
  def annotators(self) -> int | None:
    return self.inner.annotators

  @property
  def code_modules(self) -> tuple[str, ...]:
    return self.inner.code_modules

  def supports(self, name: str) -> bool:
    """Returns what the class writes, and what of the task is passed on."""
    passed = name not in self.not_passed and self.inner.supports(name)
    return passed or super().supports(name)

  def num_prompts(self, split: str) -> int:
    return self.inner.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    return self.inner.example(split, index)

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    return self.inner.reward(example, response)

  def target(self, example: Example) -> str:
    return self.inner.target(example)

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    return self.inner.recorded(example)

  def scored_options(self, example: Example) -> tuple[base.Option, ...]:
    return self.inner.scored_options(example)

  def prepare(self) -> None:
    self.inner.prepare()

  def as_read(self, text: str) -> str:
    return self.inner.as_read(text)

  def tools_in(self, example: Example, action: str) -> tuple[str, ...]:
    return self.inner.tools_in(example, action)

  def hinted(self, example: Example) -> Example:
    return self.inner.hinted(example)

  def hinted_by(self, example: Example, share: float) -> Example:
    return self.inner.hinted_by(example, share)

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    return self.inner.with_examples(example, solved)

  def rubric(self, example: Example) -> tuple[str, ...]:
    return self.inner.rubric(example)

  def with_rubric(self, example: Example, items: Sequence[str]) -> Example:
    return self.inner.with_rubric(example, items)

  def criticised(self, example: Example, response: str) -> Example:
    return self.inner.criticised(example, response)

  def spans(
    self, example: Example, response: str
  ) -> Sequence[tuple[int, int, float]]:
    return self.inner.spans(example, response)

  def task_of(self, example: Example) -> Task:
    """The task of the example, if there are several."""
    found = self.inner.task_of(example)
    return self if found is self.inner else found

  def sizes(self, split: str) -> list[int]:
    """The sizes of the task, unless the class has other prompts."""
    sizes, count = self.inner.sizes(split), self.num_prompts(split)
    return sizes if sum(sizes) == count else [count]

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    return self.inner.device_answers(examples, tokenizer)

  def reward_device(
    self,
    response_BT: Any,
    length_B: Any,
    answer_BA: Any,
    answer_length_B: Any,
    tokenizer: Any,
  ) -> dict[str, Any]:
    return self.inner.reward_device(
      response_BT, length_B, answer_BA, answer_length_B, tokenizer
    )

  def row_inputs_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> dict[str, Any]:
    return self.inner.row_inputs_device(response_BT, length_B, tokenizer)

  def make(self, example: Example) -> Environment:
    return self.inner.make(example)

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    return self.inner.begin_device(answer_BA)

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    return self.inner.step_device(state, action_BA, length_B, tokenizer)


_PLACE = 'selected_index'  # in Example.meta: the index in the whole task


@dataclasses.dataclass(frozen=True)
class Selected(Wrapped, is_base=True):
  """Base of a task that has some prompts of another one, in its order.

  A class writes `places`. Hints are not passed on.
  """

  not_passed: ClassVar[tuple[str, ...]] = ('hinted',)

  def places(self, split: str) -> list[int]:
    """The indices in the whole task; computed once for every split."""
    raise NotImplementedError

  def num_prompts(self, split: str) -> int:
    """The number of prompts that are kept."""
    return len(self._kept(split))

  def example(self, split: str, index: int) -> Example:
    """The index-th one of those that are kept."""
    base.check_index(self, split, index)
    place = self._kept(split)[index]
    found = self.task.example(split, place)
    return dataclasses.replace(
      found, id=index, meta={**found.meta, _PLACE: place}
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The responses of the data."""
    return self.task.recorded(_whole(example))

  def target(self, example: Example) -> str:
    return self.task.target(_whole(example))

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    return self.task.reward(_whole(example), response)

  @functools.cached_property
  def _known(self) -> dict[str, list[int]]:
    return {}

  def _kept(self, split):
    if split not in self._known:
      self._known[split] = self.places(split)
    return self._known[split]


def _whole(example: Example) -> Example:
  """The example as the whole task knows it."""
  meta = dict(example.meta)
  return dataclasses.replace(example, id=meta.pop(_PLACE), meta=meta)
