"""Several tasks as one, with weights."""

from collections.abc import Mapping
import dataclasses
import functools
from itertools import accumulate
import re
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import (
  Example,
  RecordedResponse,
  Task,
  TaskTraits,
  merged,
)
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import Environment, is_environment

TOTAL = 'weighted'  # the component that is the part's own weighted sum
_OWN_ID = 'part_id'  # in Example.meta: the index in the part


@dataclasses.dataclass(frozen=True)
@checked
class MixturePart:
  """A task, its name in metrics, and how often its prompts are drawn."""

  name: str
  task: Any
  weight: float = ranged(1.0, 0.0, open_low=True)

  def __post_init__(self):
    base.require(self.task, 'MixturePart.task')
    if not re.fullmatch(r'[\w.-]+', self.name):
      raise ValueError(
        f'MixturePart.name = {self.name!r}: only letters, digits and _ . -'
      )


@dataclasses.dataclass(frozen=True)
@checked
class Mixture(Task):
  """Several tasks: of all prompts drawn, part k has the share w_k / sum_j w_j.

    Mixture((MixturePart('gsm8k', QuestionAnswer(...), 3.0),
             MixturePart('sums', Arithmetic())))
    --set="task=Mixture(parts=(MixturePart(name='a', task=...), ...))"

  Shares are kept from the first draw on (`mixed_selector`); which prompts of a
  part come next is decided by the method's selector (default: a shuffled pass),
  which sees this part only. Ids are those of the parts one after the other.
  A response is judged by its part: the reward is the part's weighted sum
  (component `weighted`), and its components are kept. Components that only some
  parts have are 0 in the rows of others. If a part has episodes, responses to
  the other parts are episodes of one turn. Recorded responses are those of the
  parts, as many for every prompt or, in groups of one, the first.

  In validation and test, prompts of the parts alternate in proportion to their
  numbers: the first n are a fair sample. Metrics are given by part, too.
  """

  parts: tuple[MixturePart, ...]

  def __post_init__(self):
    names = [part.name for part in self.parts]
    if not names or len(set(names)) < len(names):
      raise ValueError(f'Mixture.parts: different names expected, got {names}')
    clusters = {part.task.traits.clusters for part in self.parts}
    if len(clusters) > 1:
      raise ValueError(
        'Mixture.parts: `clusters` must be set for all tasks or for none, or '
        'the rows of some have no cluster_id'
      )
    several.check([part.task for part in self.parts], 'Mixture.parts')

  @property
  def reward_weights(self) -> dict[str, float]:
    """The sum is formed by the part."""
    return {TOTAL: 1.0}

  @property
  def num_recorded(self) -> int:
    """The number of responses of a prompt; ValueError if parts differ."""
    found = {part.name: part.task.num_recorded for part in self.parts}
    if len(set(found.values())) > 1:
      raise ValueError(
        f'Mixture.parts: the data have {found} responses to a prompt: as many '
        'are expected in all parts, but for rollout.group_size = 1'
      )
    return min(found.values())

  @property
  def alphabet(self) -> str | None:
    """All letters, if every part has an alphabet; else None.

    Pieces of several letters are taken apart.
    """
    known = [part.task.alphabet for part in self.parts]
    if None in known:
      return None
    return ''.join(sorted({c for one in known for c in ''.join(one)}))

  @property
  def traits(self) -> TaskTraits:
    """The traits of the parts as one; the form of episodes is theirs."""
    tasks = [part.task for part in self.parts]
    forms = [task.traits for task in tasks if is_environment(task)]
    return merged([task.traits for task in tasks], *forms[:1])

  def supports(self, name: str) -> bool:
    """Episodes and records if any part has them, hints if all have."""
    parts = [part.task.supports(name) for part in self.parts]
    if name in ('make', 'recorded'):
      return any(parts)
    return name in ('reward', 'target') or (name == 'hinted' and all(parts))

  def num_prompts(self, split: str) -> int:
    """The number of prompts of all parts."""
    return sum(self.sizes(split))

  def sizes(self, split: str) -> list[int]:
    """Prompts of each part."""
    return [part.task.num_prompts(split) for part in self.parts]

  def example(self, split: str, index: int) -> Example:
    """The part's example under the mixture's index."""
    base.check_index(self, split, index)
    sizes = self.sizes(split)
    if split == 'train':
      ends = list(accumulate(sizes))
      k = next(k for k, end in enumerate(ends) if index < end)
      own = index - (ends[k] - sizes[k])
    else:
      k, own = _alternating(tuple(sizes))[index]
    part = self.parts[k]
    example = part.task.example(split, own)
    return _marked(example, index, {base.PART: part.name, _OWN_ID: own})

  def target(self, example: Example) -> str:
    """The target by the part's task."""
    return self.task_of(example).target(self._inner(example))

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The responses that the part's data hold."""
    return self.task_of(example).recorded(self._inner(example))

  def hinted(self, example: Example) -> Example:
    """The example with the part's hint."""
    changed = self.task_of(example).hinted(self._inner(example))
    marks = {name: example.meta[name] for name in (base.PART, _OWN_ID)}
    return _marked(changed, example.id, marks)

  def tools_in(self, example: Example, action: str) -> tuple[str, ...]:
    """The tools of the part's task."""
    return self.task_of(example).tools_in(self._inner(example), action)

  def prepare(self) -> None:
    """Prepares every part."""
    for part in self.parts:
      part.task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The part's components, and `weighted`."""
    task = self.task_of(example)
    found = task.reward(self._inner(example), response)
    return {**found, TOTAL: base.combine(found, task.reward_weights)}

  def task_of(self, example: Example) -> Task:
    """The part's task."""
    name = example.meta[base.PART]
    return next(part.task for part in self.parts if part.name == name)

  def make(self, example: Example) -> Environment:
    """An episode of the part, with its weighted sum."""
    task = self.task_of(example)
    inner = several.make(task, self._inner(example))
    return several.Weighted(inner, dict(task.reward_weights), TOTAL)

  def _inner(self, example):
    meta = {
      k: v for k, v in example.meta.items() if k not in (base.PART, _OWN_ID)
    }
    return dataclasses.replace(example, id=example.meta[_OWN_ID], meta=meta)


def _marked(example, index, marks):
  return dataclasses.replace(example, id=index, meta={**example.meta, **marks})


@functools.lru_cache(maxsize=8)
def _alternating(sizes):
  """(part, index in it) of each position, every part at its own pace."""
  places = [
    ((own + 0.5) / size, k, own)
    for k, size in enumerate(sizes)
    for own in range(size)
  ]
  return [(k, own) for _, k, own in sorted(places)]
