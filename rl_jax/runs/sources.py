"""The sources of an iteration's rows: the sampler, data, or both."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any, Protocol, cast

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.config import ExperimentConfig
from rl_jax.data.recorded import RecordedSet, RecordedSource
from rl_jax.data.recorded_checks import check_recorded, reads_mismatched
from rl_jax.decoding.stop import Stop
from rl_jax.episodes import turns
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import CheckContext
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.rollouts.collect import Collector, Judging
from rl_jax.rollouts.host_selector import HasState, HostSelector, PromptSelector
from rl_jax.rollouts.join import join_rounds
from rl_jax.rollouts.mixed_selector import (
  MixedSelector,
  check_sizes,
  usable_sizes,
)
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import Collected, Draw
from rl_jax.rollouts.windows import WindowedCollector
from rl_jax.runs.held_out import HeldOut
from rl_jax.runs.policy import Policy
from rl_jax.runs.slot_collector import SlotCollector
from rl_jax.runs.stages import Stages
from rl_jax.runs.valued_prompts import ValuedSelector
from rl_jax.tasks import Mixture as TaskMixture
from rl_jax.types import GroupSummary, Trajectories


class Source(Protocol):
  """A source of the rows of an iteration.

  selector: chooses their prompts; checkpoints hold its state. stop: what ends a
  response.
  """

  @property
  def selector(self) -> HasState: ...

  @property
  def stop(self) -> Stop: ...

  def collect(self, draw: Draw) -> Collected:
    """The rows of the groups that begin with the serial of the draw."""
    ...


def read_rows(
  config: ExperimentConfig, policy: Policy, sampled: Callable[[], PromptSet]
) -> tuple[PromptSet | None, RecordedSet | None]:
  """(prompts to sample for, recorded responses) that the run needs, read.

  sampled: makes the former.

  Raises: ValueError if a prompt, a response, or the method does not fit.
  """
  rollout, method = config.rollout, config.method
  prompts = records = None
  if rollout.recorded_prompts < rollout.num_prompts:
    prompts = sampled()
    method.wrapper.check(_context(config, prompts))
  if rollout.recorded_prompts:
    records = read_records(config, policy)
  return prompts, records


def _context(config, prompts):
  return CheckContext(
    method=config.method,
    task=config.task,
    rollout=config.rollout,
    prompts=prompts,
  )


def read_records(config: ExperimentConfig, policy: Policy) -> RecordedSet:
  """The recorded responses to train on.

  Raises: ValueError if one of them, or the method, does not fit.
  """
  check_recorded(config.task, config.rollout.group_size, config.method)
  records = recorded_set(config, policy, 'train')
  records.check_labels(config.method)
  return records


def recorded_set(
  config: ExperimentConfig, policy: Policy, split: str
) -> RecordedSet:
  """The recorded rows of a split."""
  rollout = config.rollout
  return RecordedSet(
    config.task,
    split,
    policy.tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
    max_response_tokens=rollout.max_response_tokens,
    num_responses=rollout.group_size - reads_mismatched(config.method),
  )


def make_held_out(
  config: ExperimentConfig, policy: Policy, stages: Stages
) -> HeldOut | None:
  """Held-out recorded rows, for runs on recorded rows; None without any."""
  settings, rollout = config.evaluation, config.rollout
  if not (settings.every and settings.split and rollout.recorded_prompts):
    return None
  if not config.task.num_prompts(settings.split):
    return None
  source = RecordedSource(
    prompts=recorded_set(config, policy, settings.split),
    selector=None,  # all of them, in order
    score=stages.score,
    mesh=stages.engine.mesh,
    num_prompts=rollout.recorded_prompts,
    mismatched=reads_mismatched(config.method),
  )
  return HeldOut(source, stages, settings.num_prompts)


def selector_of(config: ExperimentConfig) -> Any:
  """The method's selector of prompts, or a shuffled pass."""
  return config.method.selector or ShuffledPass()


def check_selector(selector: Any, prompts: PromptSet) -> None:
  """Raises ValueError if the selector cannot choose among these prompts."""
  selector.check(CheckContext(prompts=prompts))


def host_selector(
  selector: Any, task: Any, prompts: PromptSet, key: jax.Array, policy: Any
) -> PromptSelector:
  """The choice of prompts of a run; policy: what a model of them begins as.

  Raises: ValueError if the selector cannot choose among these prompts.
  """
  is_mixture = isinstance(task, TaskMixture)
  if is_mixture and selector.mixes:
    sizes = usable_sizes(prompts)
    check_sizes(sizes)
    selector = selector.with_parts(tuple(sizes.values()))
  check_selector(selector, prompts)
  if selector.predicts:
    if is_mixture:
      raise ValueError(
        f'method.selector: {type(selector).__name__} has one model of all '
        'prompts, and the shares of a mixture are fixed: give one task'
      )
    return ValuedSelector(selector, prompts, policy, key)
  if selector.mixes or not is_mixture:
    return HostSelector(selector, len(prompts), key)
  weights = {part.name: part.weight for part in task.parts}
  return MixedSelector(selector, usable_sizes(prompts), weights, key)


def _collector(config):
  """The class that samples; logs why episodes do not start early."""
  rollout = config.rollout
  if turns.crosses_updates(config):
    return SlotCollector
  if rollout.turns is not None and rollout.staleness:
    logging.info(
      'rollout.staleness = %d: episodes are sampled by weights of so many '
      'updates before, and none starts early: %s',
      rollout.staleness,
      turns.what_waits(config),
    )
  return Collector if rollout.window_tokens is None else WindowedCollector


def make_source(
  config: ExperimentConfig,
  rows: tuple[PromptSet | None, RecordedSet | None],
  stages: Stages,
  judging: Judging,
  key: jax.Array,
  policy: Policy,
) -> Source:
  """The source that rollout.recorded_prompts asks for; rows: of read_rows.

  judging: of samples, see runs.reward_models, runs.judges. policy: what a
  model of prompts begins as.
  """
  rollout, (prompts, records) = config.rollout, rows
  chooses, task = selector_of(config), config.task

  def sampler(prompts, rollout, score):
    selector = host_selector(chooses, task, prompts, key, policy)
    memory = config.method.wrapper.make_memory(prompts, rollout)
    if memory is not None:
      selector = RememberingSelector(selector, memory)
    return _collector(config)(
      rollout,
      engine=stages.engine,
      mesh=stages.mesh,
      score=score,
      prompts=prompts,
      selector=selector,
      judging=judging,
      key=key,
    )

  def recorded(records, selector, key):
    return RecordedSource(
      prompts=records,
      selector=host_selector(selector, task, records, key, policy),
      score=stages.score,
      mesh=stages.engine.mesh,
      num_prompts=rollout.recorded_prompts,
      mismatched=reads_mismatched(config.method),
    )

  if records is None:
    return sampler(prompts, rollout, stages.score)
  if prompts is None:
    return cast(Source, recorded(records, chooses, key))  # it has a selector
  count = rollout.num_prompts - rollout.recorded_prompts
  fewer = dataclasses.replace(rollout, num_prompts=count)
  sampled = sampler(prompts, fewer, unscored)
  # Separate draws: it reads other prompts than are sampled for.
  other = jax.random.fold_in(key, rollout.recorded_prompts)
  return MixedSource(
    sampled, recorded(records, ShuffledPass(), other), stages.score
  )


def unscored(params, traj, method):
  """The score of a part of a batch: the whole is scored later."""
  del params, method
  return traj, {}


class _Selectors:
  """The selectors of two sources as one."""

  def __init__(self, sampled: PromptSelector, recorded: PromptSelector):
    self._parts = {'sampled': sampled, 'logged': recorded}

  @property
  def state(self) -> dict[str, Any]:
    """The states by source."""
    return {name: part.state for name, part in self._parts.items()}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    for name, part in self._parts.items():
      part.state = value[name]


# What pieces read of rows of one kind (row_inputs.KEYS) on those of the other:
# no label, no distance, no judged step, no answer, no comparison.
_ABSENT = {
  'logged_B': 0.0,
  'chosen_B': -1.0,
  'mismatched_B': 0.0,
  'unlabelled_B': 0.0,
  'semantic_distance_B': 0.0,
  'aspect_label_BA': row_inputs.NO_LABEL,
  'step_label_BT': -1.0,
  'step_score_BT': -1.0,
  'cluster_id_B': -1.0,
  'beats_BG': 0.5,
}


class MixedSource:
  """Sampled groups followed by recorded ones, a fixed number of each.

  Sampled rows have logged_B 0 and no labels, whatever the data have; recorded
  ones have no scores of reward models.
  """

  def __init__(self, sampled: Collector, recorded: RecordedSource, score: Any):
    self._sampled, self._recorded, self._score = sampled, recorded, score
    self.stop = sampled.stop
    assert recorded.selector is not None
    self.selector = _Selectors(sampled.selector, recorded.selector)
    join = functools.partial(_join, sampled.row_inputs)
    self._join = jax.jit(join, out_shardings=sampled.replicated)

  def collect(self, draw: Draw) -> Collected:
    """See Collector.collect: one round, which holds both."""
    drawn, _, (first,), lengths = self._sampled.collect(draw)
    rows, second = self._recorded.rows(
      draw.first_serial + drawn.num_prompts, draw.policy_version
    )
    traj, metrics = self._score(
      draw.params, self._join(drawn, rows), draw.method
    )
    done = dataclasses.replace(
      first,
      indices=np.concatenate([first.indices, second.indices]),
      examples=[*first.examples, *second.examples],
      errors=[*first.errors, *second.errors],
      reward_NG=np.concatenate([first.reward_NG, second.reward_NG]),
    )
    more = second.responses['length'].reshape(-1, lengths.shape[1])
    return Collected(traj, metrics, [done], np.concatenate([lengths, more]))


def _join(
  token_inputs: Callable[[Trajectories], dict[str, jax.Array]],
  drawn: Trajectories,
  rows: Trajectories,
) -> Trajectories:
  """The groups of both, the sampled ones first.

  token_inputs: what the task says of tokens, which sampled rows have already.

  Raises: ValueError for extras of one of them that the other lacks.
  """
  rows = rows.replace(extras={**rows.extras, **token_inputs(rows)})
  return join_rounds((_with_all(drawn, rows), _with_all(rows, drawn)))


def _with_all(traj: Trajectories, other: Trajectories) -> Trajectories:
  """Adds the extras and rewards of the other rows, absent by _ABSENT."""
  missing = {k: x for k, x in other.extras.items() if k not in traj.extras}
  unknown = sorted(missing.keys() - _ABSENT.keys())
  if unknown:
    raise ValueError(
      f'rollout.recorded_prompts mixes data and samples, of which only one '
      f'kind '
      f'has {", ".join(unknown)}: set it to 0 or to rollout.num_prompts'
    )
  B = len(traj.weight_B)

  def fill(name, x):
    return jnp.full((B, *x.shape[1:]), _ABSENT[name], x.dtype)

  rewards = {
    name: fill(f'{name}_B', x)
    for name, x in other.rewards.items()
    if name not in traj.rewards and f'{name}_B' in _ABSENT
  }
  return traj.replace(
    extras={**traj.extras, **{k: fill(k, x) for k, x in missing.items()}},
    rewards={**traj.rewards, **rewards},
  )


class Memory(Protocol):
  """Made by `make_memory(prompts, rollout)` of a rollout piece."""

  name: str  # in checkpoints
  state: dict[str, np.ndarray]  # read as copies; set on restoring


class RememberingSelector:
  """A selector and a memory: what a checkpoint holds of both."""

  def __init__(self, prompts: Any, memory: Memory):
    self.prompts, self.memory = prompts, memory

  @property
  def state(self) -> dict[str, Any]:
    """The states of the selector and of the memory."""
    return {'prompts': self.prompts.state, self.memory.name: self.memory.state}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self.prompts.state = value['prompts']
    self.memory.state = value[self.memory.name]

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""
    return self.prompts.select(count)

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """Gives the selector the outcomes of the prompts."""
    self.prompts.observe(ids, summary)
