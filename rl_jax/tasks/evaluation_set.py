"""Further sets of prompts that a run is evaluated on."""

from collections.abc import Mapping, Sequence
import dataclasses
import re
from typing import Any

from rl_jax import checks
from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Task, TaskTraits, merged
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import Environment, is_environment

_SET = 'evaluation_set'  # in Example.meta


_NAME = re.compile(r'[\w.-]+')
AVERAGE = 'average'  # metrics of averages are average/NAME
# Of sets whose options are compared, see measures.option_scores.
OPTION_ACCURACIES = (
  *('acc', 'acc_per_character', 'acc_per_byte', 'acc_per_token'),
)


@dataclasses.dataclass(frozen=True)
@checked
class EvaluationSet(Task):
  """A split of the run's task, or of its own task; metrics have its name.

  As a task it holds the prompts of `split` under every name of a split; its
  examples say which set they are of, see `Several`. The fields after `task` are
  those of EvaluationConfig for this set; None: as `evaluation` says. Sets of
  equal sampling, samples and tokens share compiled programs. With `options`
  nothing is sampled.
  """

  name: str
  split: str = 'test'
  task: Any = None  # None: that of the run
  limit: int | None = ranged(None, 1)  # its num_prompts
  num_samples: int | None = ranged(None, 0)
  greedy: bool | None = None
  options: bool | None = None
  temperature: float | None = ranged(None, 0.0, open_low=True)
  top_k: int | None = ranged(None, 1)
  top_p: float | None = ranged(None, 0.0, 1.0, open_low=True)
  max_response_tokens: int | None = ranged(None, 1)

  def __post_init__(self):
    _check_name('EvaluationSet', self.name)
    if self.name == AVERAGE:
      raise ValueError(
        f'EvaluationSet.name = {AVERAGE!r} is the name of averages over sets'
      )
    base.check_split(self.split)
    if self.task is not None:
      base.require(self.task, 'EvaluationSet.task')

  @property
  def settings(self) -> dict[str, Any]:
    """The fields of EvaluationConfig that the set has values for."""
    names = {'num_prompts': self.limit} | checks.values(self, _OWN)
    return {name: x for name, x in names.items() if x is not None}

  @property
  def traits(self) -> TaskTraits:
    return self.task.traits

  @property
  def reward_weights(self) -> Mapping[str, float]:
    return self.task.reward_weights

  def supports(self, name: str) -> bool:
    """Its own methods, and the options of the task."""
    if name == 'scored_options':
      return self.task.supports(name)
    return super().supports(name)

  def num_prompts(self, split: str) -> int:
    """The number of prompts in the split of the set."""
    del split
    return self.task.num_prompts(self.split)

  def example(self, split: str, index: int) -> Example:
    """The task's example, marked."""
    del split
    example = self.task.example(self.split, index)
    return dataclasses.replace(example, meta={**example.meta, _SET: self.name})

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The task's, of an example that is marked."""
    return self.task.reward(_unmarked(example), response)

  def scored_options(self, example: Example) -> tuple[base.Option, ...]:
    """The task's, of an example that is marked."""
    return self.task.scored_options(_unmarked(example))


# Fields of an EvaluationSet that have the same name in EvaluationConfig.
_OWN = (
  *('num_samples', 'greedy', 'options', 'temperature', 'top_k', 'top_p'),
  'max_response_tokens',
)


@dataclasses.dataclass(frozen=True)
@checked
class SetAverage:
  """The mean of accuracies of several sets, as papers report one.

  metrics: 'SET/pass_at_1', 'SET/avg_at_32' and so on, without a set for the
  split of the run's task. weights: of the metrics, as numbers of problems; ():
  all count alike. The metric is average/NAME.
  """

  name: str
  metrics: tuple[str, ...]
  weights: tuple[float, ...] = ()

  def __post_init__(self):
    _check_name('SetAverage', self.name)
    if self.weights and (
      len(self.weights) != len(self.metrics) or min(self.weights) <= 0
    ):
      raise ValueError(
        f'SetAverage.weights = {self.weights} of {self.name!r}: expected one '
        f'number above 0 for each of {self.metrics}'
      )
    if not self.metrics or len(set(self.metrics)) < len(self.metrics):
      raise ValueError(
        f'SetAverage.metrics = {self.metrics} of {self.name!r}: one metric at '
        'least, and each once'
      )

  def of(self, values: Sequence[float]) -> float:
    """The average of the values of the metrics, in their order."""
    weights = self.weights or (1.0,) * len(values)
    pairs = zip(weights, values, strict=True)
    return sum(weight * value for weight, value in pairs) / sum(weights)


def _check_name(kind, name):
  if not _NAME.fullmatch(name):
    raise ValueError(f'{kind}.name = {name!r}: only letters, digits and _ . -')


@dataclasses.dataclass(frozen=True)
class Several(Task):
  """Judges responses by the task of their set, or by that of the run."""

  task: Task
  sets: tuple[EvaluationSet, ...]

  @property
  def reward_weights(self) -> Mapping[str, float]:
    """The weights of the run."""
    return self.task.reward_weights

  @property
  def traits(self) -> TaskTraits:
    """The traits of all tasks as one; episodes have the form of the run's."""
    return merged([task.traits for task in self._tasks()], self.task.traits)

  def supports(self, name: str) -> bool:
    """Episodes, if the run has them."""
    return name == 'reward' or (name == 'make' and is_environment(self.task))

  def num_prompts(self, split: str) -> int:
    """The number of the run's prompts; sets have their own."""
    return self.task.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """An example of the run; sets have their own."""
    return self.task.example(split, index)

  def weights_of(self, example: Example) -> Mapping[str, float]:
    """The weights of the example's own task."""
    return self.task_of(example).reward_weights

  def task_of(self, example: Example) -> Task:
    """The task of the example's set, or of the run."""
    return self._task_of(example.meta.get(_SET))

  def tools_in(self, example: Example, action: str) -> tuple[str, ...]:
    """The tools of the example's own task."""
    return self.task_of(example).tools_in(_unmarked(example), action)

  def prepare(self) -> None:
    """Prepares every task."""
    for task in self._tasks():
      task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The rewards by the example's own task."""
    return self.task_of(example).reward(_unmarked(example), response)

  def make(self, example: Example) -> Environment:
    """The environment of the example's own task."""
    return several.make(self.task_of(example), _unmarked(example))

  def _task_of(self, name):
    if name is None:
      return self.task
    return next(one.task for one in self.sets if one.name == name)

  def _tasks(self):
    return (self.task, *(one.task for one in self.sets))


def _unmarked(example):
  meta = {name: x for name, x in example.meta.items() if name != _SET}
  return dataclasses.replace(example, meta=meta)


def check_sets(
  sets: Sequence[EvaluationSet], split: str | None, consensus: Sequence[str]
) -> None:
  """Raises ValueError, naming the field of `evaluation`, if they do not fit.

  split: of the run's own task, or None. consensus: two names of sets, or more.
  """
  for one in sets:
    if not isinstance(one, EvaluationSet):
      raise ValueError(f'evaluation.sets: {one!r} is not an EvaluationSet')
  names = [one.name for one in sets]
  if len(set(names)) < len(names):
    raise ValueError(f'evaluation.sets: names occur twice: {names}')
  if split is None and not names:
    raise ValueError('evaluation.split = None, and evaluation.sets is empty')
  if consensus and (len(consensus) == 1 or not set(consensus) <= set(names)):
    raise ValueError(
      f'evaluation.consensus = {consensus}: two names at least, of '
      f'evaluation.sets: {names}'
    )


def check_averages(
  averages: Sequence[SetAverage], known: Mapping[str, Sequence[str]]
) -> None:
  """Raises ValueError unless averages are of metrics that sets have.

  known: the accuracies that are measured, by name of a set; '' of the split.
  """
  names = []
  for one in averages:
    if not isinstance(one, SetAverage):
      raise ValueError(f'evaluation.averages: {one!r} is not a SetAverage')
    names.append(one.name)
    for metric in one.metrics:
      name, _, accuracy = metric.rpartition('/')
      if name not in known:
        raise ValueError(
          f'evaluation.averages: {metric!r} of {one.name!r}: no set has the '
          f'name {name!r}, but {sorted(known)}'
        )
      if accuracy not in known[name]:
        raise ValueError(
          f'evaluation.averages: {metric!r} of {one.name!r}: {name!r} has '
          f'{", ".join(known[name])}'
        )
  if len(set(names)) < len(names):
    raise ValueError(f'evaluation.averages: names occur twice: {names}')


def judged(task: Any, sets: tuple[EvaluationSet, ...]) -> Any:
  """The task by which verifiers judge: `task` if no set has its own."""
  own = tuple(one for one in sets if one.task is not None)
  if is_environment(task):
    several.check([task, *(one.task for one in own)], 'evaluation.sets')
  return Several(task, own) if own else task
