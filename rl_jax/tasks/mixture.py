"""Several tasks as one, with weights."""

from collections.abc import Mapping
import dataclasses
import functools
from itertools import accumulate
import re
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import (
  Environment,
  asked_by,
  is_environment,
  rewrites,
)

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
    if not hasattr(self.task, 'num_prompts'):
      raise ValueError(f'MixturePart.task = {self.task!r} is no task')
    if not re.fullmatch(r'[\w.-]+', self.name):
      raise ValueError(
        f'MixturePart.name = {self.name!r}: letters, digits and _ . - alone'
      )


@dataclasses.dataclass(frozen=True)
@checked
class Mixture:
  """Of all prompts that a run draws, part k has the share w_k / sum_j w_j.

    Mixture((MixturePart('gsm8k', QuestionAnswer(...), 3.0),
             MixturePart('sums', Arithmetic())))
    --set="task=Mixture(parts=(MixturePart(name='a', task=...), ...))"

  Shares are kept from the first draw on (`mixed_selector`); which prompts of a
  part come next is decided by the method's selector (default: a shuffled pass),
  which sees this part alone. Ids are those of the parts one behind the other.
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
    clusters = {bool(getattr(p.task, 'clusters', False)) for p in self.parts}
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
  def num_logged(self) -> int:
    """Of every part; raises ValueError where they differ."""
    found = {part.name: base.num_logged(part.task) for part in self.parts}
    if len(set(found.values())) > 1:
      raise ValueError(
        f'Mixture.parts: the data have {found} responses to a prompt: as many '
        'are expected in all parts, but for rollout.group_size = 1'
      )
    return min(found.values())

  @property
  def logged(self) -> Any:
    """As of the parts, if any part records responses; else AttributeError."""
    if not any(hasattr(part.task, 'logged') for part in self.parts):
      raise AttributeError('no part of the mixture records responses')
    return lambda example: base.logged(
      self.task_of(example), self._inner(example)
    )

  @property
  def alphabet(self) -> str:
    """All letters, if every part has an alphabet; else AttributeError.

    Pieces of several letters are taken apart.
    """
    pieces = [piece for part in self.parts for piece in part.task.alphabet]
    return ''.join(sorted({*''.join(pieces)}))

  @property
  def needs_workers(self) -> bool:
    """If any part does."""
    return any(getattr(p.task, 'needs_workers', False) for p in self.parts)

  @property
  def reward_seconds(self) -> float:
    """Of the slowest part."""
    return max(getattr(p.task, 'reward_seconds', 0.0) for p in self.parts)

  @property
  def make(self) -> Any:
    """Episodes, if any part has them; else AttributeError."""
    if not any(is_environment(part.task) for part in self.parts):
      raise AttributeError('no part of the mixture has a method make')
    return self._make

  @property
  def chat(self) -> bool:
    """Of the episodes."""
    return self._of_episodes('chat', False)

  @property
  def role(self) -> str:
    """Of the observations."""
    return self._of_episodes('role', 'user')

  @property
  def arguments(self) -> Mapping[str, Any]:
    """Variables of the chat template, of the episodes."""
    return self._of_episodes('arguments', {})

  @property
  def call_mark(self) -> str:
    """Of the episodes."""
    return self._of_episodes('call_mark', '')

  @property
  def rewrites(self) -> bool:
    """Whether those of any part may forget."""
    return any(rewrites(p.task) for p in self.parts)

  @property
  def asks(self) -> tuple[str, ...]:
    """Of all parts."""
    return tuple(name for p in self.parts for name in asked_by(p.task))

  @property
  def global_random(self) -> bool:
    """If any part has it."""
    return any(getattr(p.task, 'global_random', True) for p in self.parts)

  @property
  def deterministic(self) -> bool:
    """If every part is."""
    return all(getattr(p.task, 'deterministic', True) for p in self.parts)

  @property
  def hinted(self) -> Any:
    """As of the parts, if all have hints; else AttributeError."""
    hints = {p.name: p.task.hinted for p in self.parts}

    def hinted(example):
      changed = hints[example.meta[base.PART]](self._inner(example))
      marks = {name: example.meta[name] for name in (base.PART, _OWN_ID)}
      return _marked(changed, example.id, marks)

    return hinted

  def num_prompts(self, split: str) -> int:
    """Of all parts."""
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
    """As of the part."""
    return self.task_of(example).target(self._inner(example))

  def prepare(self) -> None:
    """That of every part."""
    for part in self.parts:
      if hasattr(part.task, 'prepare'):
        part.task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The part's components, and `weighted`."""
    task = self.task_of(example)
    found = task.reward(self._inner(example), response)
    return {**found, TOTAL: base.combine(found, task.reward_weights)}

  def task_of(self, example: Example) -> Any:
    """The part's task."""
    name = example.meta[base.PART]
    return next(part.task for part in self.parts if part.name == name)

  def _make(self, example: Example) -> Environment:
    task = self.task_of(example)
    inner = several.make(task, self._inner(example))
    return several.Weighted(inner, task.reward_weights, TOTAL)

  def _of_episodes(self, name, default):
    own = [p.task for p in self.parts if is_environment(p.task)]
    return getattr(own[0], name, default) if own else default

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
