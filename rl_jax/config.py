"""The configuration of one experiment: a tree of frozen dataclasses."""

from collections.abc import Callable
import dataclasses
import math
from typing import Any

from rl_jax import method as method_lib
from rl_jax import serialization
from rl_jax.checks import INT32, checked, chosen, ranged
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.models.judge_source import Judge
from rl_jax.models.partner_source import Partner
from rl_jax.models.reward_source import RewardModel
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.records.trackers import TrackingConfig
from rl_jax.records.trackers import check as check_trackers
from rl_jax.rollouts import checks as rollout_checks
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import base, evaluation_set
from rl_jax.verification.pool import (
  EPISODE_CALLS,
  REWARD,
  VerifierConfig,
  check_limits,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class EvaluationConfig:
  """Greedy accuracy on a split every so many iterations (0: never).

  sets: further `tasks.EvaluationSet`s, whose metrics are
    evaluation/NAME/pass_at_1 and so on; each may have its own number of prompts
    and samples, temperature, top_k, top_p, limit of tokens and `greedy`.
    split: None: these sets only.
  averages: `tasks.SetAverage`s over sets; metrics evaluation/average/NAME.
  greedy: False: no greedy responses, only num_samples drawn ones.
  options: True: no responses; the options of the rows (tasks.ChoiceRows)
    are compared by log-likelihood (measures.option_scores: acc,
    acc_per_character and others), of max_response_tokens each at most.
  intervals: adds the ends NAME_low and NAME_high of 95% intervals of pass_at_1,
    avg_at_k, pass_at_j and acc over problems (measures.by_problem).
  sample: False: no responses, only losses of recorded rows of the split, which
    runs on such rows (rollout.recorded_prompts) evaluate in any case.
  null is what the rollout does: its temperature, the transforms of the method,
  its limit. top_k and top_p, if one is given, take the place of the transforms.
  transforms: further ones, of evaluations only (pieces.logits).

  borda_power: not null adds the accuracy of one answer by votes of the samples,
    weighted by self-certainty to this power (measures.best_of; released code:
    0.5). Votes are of extracted answers, whether task.clusters is set or not
    (tasks.votes).
  consensus: names of sets with the same prompts; adds what their greedy answers
    are worth together, the last only if the others differ (measures.consensus).
    Answers are extracted, too.
  beams: greedy responses become the likeliest ones that beam search of this
    width finds (decoding.beam_search); 1 is greedy.
  """

  every: int = ranged(0, 0)
  split: str | None = 'validation'
  sample: bool = True
  num_prompts: int = ranged(128, 1)
  num_samples: int = ranged(0, 0)  # further samples a prompt, for pass@k
  batch_prompts: int = ranged(128, 1)
  sets: tuple[Any, ...] = ()
  averages: tuple[Any, ...] = ()
  greedy: bool = True
  options: bool = False
  intervals: bool = False
  temperature: float | None = ranged(None, 0.0, open_low=True)
  top_k: int | None = ranged(None, 1)
  top_p: float | None = ranged(None, 0.0, 1.0, open_low=True)
  transforms: tuple[Any, ...] = ()
  max_response_tokens: int | None = ranged(None, 1)
  borda_power: float | None = ranged(None, 0.0)
  consensus: tuple[str, ...] = ()
  beams: int | None = ranged(None, 1)

  def __post_init__(self):
    evaluation_set.check_sets(self.sets, self.split, self.consensus)
    own: dict[str, dict[str, Any]] = {
      one.name: one.settings for one in self.sets
    }
    split: dict[str, Any] = {}
    if self.split is not None:
      own[''] = split
    for name, one in own.items():
      if one.get('options', self.options):
        continue
      greedy = one.get('greedy', self.greedy)
      if not (greedy or one.get('num_samples', self.num_samples)):
        raise ValueError(
          f'evaluation: the set {name!r} has greedy = False and num_samples = '
          '0: there is nothing to measure'
        )
    by_name = self.by_name()
    for name in self.consensus:
      if not by_name[name].greedy:
        raise ValueError(
          f'evaluation.consensus: {name!r} has greedy = False, and greedy '
          'answers are compared'
        )
    known = {name: one.accuracies() for name, one in by_name.items()}
    evaluation_set.check_averages(self.averages, known)

  def by_name(self) -> dict[str, 'EvaluationConfig']:
    """The settings of each set by its name; '' is the split."""
    found: dict[str, EvaluationConfig] = {}
    if self.split is not None:
      found[''] = self
    for one in self.sets:
      alone = {'split': one.split, 'sets': (), 'averages': (), 'consensus': ()}
      found[one.name] = dataclasses.replace(self, **{**alone, **one.settings})
    for name, one in found.items():
      if one.options and (one.greedy or one.num_samples):
        found[name] = dataclasses.replace(one, greedy=False, num_samples=0)
    return found

  def accuracies(self) -> tuple[str, ...]:
    """The accuracies of the split: pass_at_1, avg_at_k, pass_at_j, or those of
    options.
    """
    if self.options:
      return evaluation_set.OPTION_ACCURACIES
    k, found = self.num_samples, ['pass_at_1'] * self.greedy
    if k:
      found.append(f'avg_at_{k}')
    j = 1
    while j < k:
      j = min(2 * j, k)
      found.append(f'pass_at_{j}')
    return tuple(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class GuardConfig:
  """Limits that stop a run before it wastes its budget."""

  max_skipped_in_a_row: int = ranged(3, 1)  # updates with a non-finite gradient
  # Nats, sampler against trainer; None or infinity: off.
  max_logp_gap: float | None = ranged(1.0, 0.0, math.inf)
  log_rollouts: int = ranged(4, 0)  # prompts an iteration in rollouts.jsonl


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class StoppingConfig:
  """When a run ends before its last iteration.

  metric: of metrics.jsonl, as 'evaluation/pass_at_1'; the run ends when it has
    not improved by more than min_delta in `patience` rows that have it (None:
    does not count), or has reached target; mode: whether more is better ('max')
    or less. None: never.
  session_seconds: after this wall time of a session the run saves and exits
    with 143, as after SIGTERM: run it again to continue. The iteration and the
    save at the end are not counted. None: no limit.
  """

  metric: str | None = None
  patience: int | None = ranged(10, 1)
  target: float | None = ranged(None)
  min_delta: float = ranged(0.0, 0.0)
  mode: str = chosen('max', ('max', 'min'))
  session_seconds: float | None = ranged(None, 0.0, open_low=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class DiagnosticsConfig:
  """Further measurements of a run; they change no other number.

  influence_every: iterations between measurements of what the method and each
  of its pieces do to the gradient (learning.influence); 0: never. A measured
  iteration costs a few times as much. baseline: what the method is compared
  with; None: with itself.
  """

  influence_every: int = ranged(0, 0)
  baseline: method_lib.Method | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ExperimentConfig:
  """Everything that decides the numbers of a run."""

  seed: int = ranged(0, -(2**63), 2**63 - 1)
  iterations: int = ranged(100, 0)
  task: Any
  method: method_lib.Method
  model: ModelSource = ModelSource()
  reward_models: tuple[RewardModel, ...] = ()
  judges: tuple[Judge, ...] = ()
  partners: tuple[Partner, ...] = ()
  rollout: RolloutConfig = RolloutConfig()
  update: UpdateConfig = UpdateConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  mesh: MeshConfig = MeshConfig()
  evaluation: EvaluationConfig = EvaluationConfig()
  checkpoint: CheckpointConfig = CheckpointConfig()
  verifier: VerifierConfig = VerifierConfig()
  guards: GuardConfig = GuardConfig()
  stopping: StoppingConfig = StoppingConfig()
  tracking: TrackingConfig = TrackingConfig()
  diagnostics: DiagnosticsConfig = DiagnosticsConfig()


def optimizer_of(config: ExperimentConfig) -> OptimizerConfig:
  """The optimizer of a run: by default it ends with the last iteration.

  total_steps = iterations * steps_of_rollout, and a warm-up of rollouts is one
  of warmup_steps * steps_of_rollout steps.
  """
  optimizer, steps = config.optimizer, steps_of_rollout(config)
  if optimizer.warmup_unit == 'rollouts':
    optimizer = dataclasses.replace(
      optimizer,
      warmup_steps=optimizer.warmup_steps * steps,
      warmup_unit='steps',
    )
  if not optimizer.needs_total_steps or optimizer.total_steps is not None:
    return optimizer
  return dataclasses.replace(optimizer, total_steps=config.iterations * steps)


def steps_of_rollout(config: ExperimentConfig) -> int:
  """Optimizer steps of an iteration: epochs * rows / rows of a minibatch."""
  rollout, update = config.rollout, config.update
  if update.minibatch_rows:
    rows = rollout.num_prompts * rollout.group_size
    return update.epochs * (rows // update.minibatch_rows)
  minibatch = update.minibatch_prompts or rollout.num_prompts
  return update.epochs * (rollout.num_prompts // minibatch)


def evaluations(config: ExperimentConfig) -> dict[str, ExperimentConfig]:
  """The configuration with the settings of each set, by its name."""
  return {
    name: dataclasses.replace(config, evaluation=one)
    for name, one in config.evaluation.by_name().items()
  }


def evaluated_tokens(config: ExperimentConfig) -> int:
  """The limit of a response in the evaluation of the split."""
  own = config.evaluation.max_response_tokens
  return config.rollout.max_response_tokens if own is None else own


def most_evaluated_tokens(config: ExperimentConfig) -> int:
  """The largest limit of a response in the evaluation of any set."""
  return max(map(evaluated_tokens, evaluations(config).values()))


def check_tokens(config: ExperimentConfig) -> None:
  """Raises ValueError if a round has more tokens than int32 can count."""
  rollout, turns = config.rollout, config.rollout.turns
  least = 0
  if turns is not None:  # the widest part of an episode that has an array
    least = turns.max_turn_tokens + turns.max_observation_tokens
  found = [
    (
      'rollout.num_prompts * group_size',
      rollout.num_prompts,
      rollout.group_size,
      max(least, rollout.max_response_tokens),
    )
  ]
  for name, one in evaluations(config).items():
    own = one.evaluation
    found.append(
      (
        'evaluation.batch_prompts * num_samples' + f' of {name}' * bool(name),
        min(own.num_prompts, own.batch_prompts),
        max(1, own.num_samples),
        max(least, evaluated_tokens(one)),
      )
    )
  for names, prompts, rows, tokens in found:
    count = prompts * (rollout.max_prompt_tokens + rows * tokens)
    if count > INT32:
      raise ValueError(
        f'{names} = {prompts} * {rows}, with {rollout.max_prompt_tokens} '
        f'tokens of a prompt and {tokens} of a response: {count} tokens in a '
        f'round, more than {INT32}'
      )


def on_devices(config: ExperimentConfig, count: int) -> ExperimentConfig:
  """The configuration with a mesh of sizes only, for so many devices.

  Where mesh.data is null it is the largest number that shares microbatches and
  slots evenly, so that some devices may stay idle.
  """
  mesh = config.mesh
  if mesh.data is not None:
    return config
  found = config
  for data in range(mesh.sizes(count)['data'], 0, -1):
    found = dataclasses.replace(
      config, mesh=dataclasses.replace(mesh, data=data)
    )
    if all(large % small == 0 for small, _, large, _ in _shares(found)):
      break
  return found


def _shares(config: ExperimentConfig):
  """(parts, their name, of how many, their name): what the mesh must divide."""
  rollout, sizes = config.rollout, config.mesh.sizes()
  minibatch = config.update.minibatch_prompts or rollout.num_prompts
  microbatch = config.update.microbatch_prompts or minibatch
  # Whole groups on every row shard: group statistics need no communication.
  rows = sizes['data'] * sizes['fsdp']
  if count := config.update.minibatch_rows:
    count = config.update.microbatch_rows or count
    yield rows, 'mesh.data * mesh.fsdp', count, 'the rows of a microbatch'
  if count := rollout.round_prompts:
    yield rows, 'mesh.data * mesh.fsdp', count, 'rollout.round_prompts'
  yield rows, 'mesh.data * mesh.fsdp', microbatch, 'the microbatch'
  part = rollout.num_prompts // rollout.parts
  yield rows, 'mesh.data * mesh.fsdp', part, 'the prompts of rollout.parts'
  if rollout.slots is not None:
    axes = mesh_lib.axes_of(part, 'sampled_rows', sizes)
    yield (
      math.prod(sizes[axis] for axis in axes),
      ' * '.join(f'mesh.{axis}' for axis in axes),
      rollout.slots,
      'rollout.slots',
    )


def validate(config: ExperimentConfig) -> None:
  """Raises ValueError before anything is compiled if parts do not fit."""
  serialization.check(config)
  base.check_task(config.task)
  _check_method(config, config.method)
  rollout_checks.check(config)
  check_trackers(config.tracking)
  check_stopping_metric(
    config.stopping.metric, config.evaluation.every, config.method
  )
  if config.stopping.target is not None and config.stopping.metric is None:
    raise ValueError(
      f'stopping.target = {config.stopping.target} is a value of a metric: set '
      'stopping.metric'
    )
  if config.diagnostics.influence_every and config.method.shifts:
    raise ValueError(
      f'diagnostics.influence_every = {config.diagnostics.influence_every}: '
      'the method has a loss of role "shift", and influence is measured at the '
      'parameters themselves: set it to 0'
    )
  if config.diagnostics.influence_every and config.diagnostics.baseline:
    _check_baseline(config, config.diagnostics.baseline)
  _check_evaluation(config)
  _check_averages(config)
  _check_rows(config)
  method_lib.check_run(config.method, config.task, config.rollout)
  if config.verifier.on_device:
    _check_device_verifier(config)
  else:
    _check_turn_seconds(config)
    _check_kinds(config)
    check_limits(
      config.task, config.verifier.workers, config.verifier.timeout_seconds
    )
  _check_together(config, _check_sizes, check_tokens)


def _check_turn_seconds(config: ExperimentConfig) -> None:
  """Raises ValueError if the tools of a turn have more time than the turn."""
  settings, sets = config.verifier, config.evaluation.sets
  for task in (config.task, *(one.task for one in sets)):
    if task is None or not settings.workers:
      continue
    seconds = task.traits.turn_seconds
    if seconds > settings.timeout_seconds:
      raise ValueError(
        f'{type(task).__name__} has turn_seconds = {seconds}: expected at most '
        f'verifier.timeout_seconds = {settings.timeout_seconds}, which ends a '
        'turn in any case; set one of them'
      )


def _check_kinds(config: ExperimentConfig) -> None:
  """Raises ValueError for limits of calls that the run does not make."""
  made = EPISODE_CALLS if config.rollout.turns is not None else (REWARD,)
  settings = config.verifier
  for name, numbers in (('limits', settings.limits), ('rates', settings.rates)):
    if idle := sorted(set(numbers) - set(made)):
      raise ValueError(
        f'verifier.{name} = {numbers} has {idle}, of which this run makes no '
        f'calls: expected kinds of {made} (rewards of episodes are a part of '
        'their steps)'
      )


def _check_together(
  config: ExperimentConfig, *checks: Callable[[ExperimentConfig], None]
) -> None:
  """Raises one ValueError with what all of the checks find."""
  found = []
  for check in checks:
    try:
      check(config)
    except ValueError as error:
      found.append(str(error))
  if found:
    raise ValueError('; '.join(found))


def _check_method(config: ExperimentConfig, method: method_lib.Method) -> None:
  """Raises ValueError if the method does not fit rollout and model."""
  method_lib.validate(
    method,
    group_size=config.rollout.group_size,
    has_value_head=config.model.value_head,
    num_values=config.model.num_values,
  )
  if config.optimizer.critic_multiplier != 1 and not config.model.value_head:
    raise ValueError(
      'optimizer.critic_multiplier = '
      f'{config.optimizer.critic_multiplier} without a critic: set '
      'model.value_head=True'
    )


def _check_sizes(config: ExperimentConfig) -> None:
  """Raises ValueError where a size must divide another and does not."""
  rollout, update, mesh = config.rollout, config.update, config.mesh
  minibatch = update.minibatch_prompts or rollout.num_prompts
  microbatch = update.microbatch_prompts or minibatch

  wrong: list[str] = []

  def divides(small_name: str, small: int, large_name: str, large: int):
    if large % small:
      wrong.append(f'{small_name} = {small} must divide {large_name} = {large}')

  divides(
    'update.minibatch_prompts',
    minibatch,
    'rollout.num_prompts',
    rollout.num_prompts,
  )
  divides('update.microbatch_prompts', microbatch, 'the minibatch', minibatch)
  rows = update.microbatch_rows or rollout.group_size
  if update.minibatch_rows:
    total = rollout.num_prompts * rollout.group_size
    named = 'rollout.num_prompts * group_size'
    divides('update.minibatch_rows', update.minibatch_rows, named, total)
    rows = update.microbatch_rows or update.minibatch_rows
    divides(
      'update.microbatch_rows',
      rows,
      'update.minibatch_rows',
      update.minibatch_rows,
    )
  else:
    divides(
      'update.microbatch_rows', rows, 'rollout.group_size', rollout.group_size
    )
  for need in config.method.needs():
    # Even of rollout.group_size: wrappers of rollouts make larger groups.
    by_place = not isinstance(need, str) and need.by_place
    if update.microbatch_rows and by_place:
      raise ValueError(
        f'update.microbatch_rows = {rows}: the method needs {need.name}, which '
        'compares all rows of a group: set null'
      )
  for parts, name, total, of in _shares(config):
    divides(name, parts, of, total)
  divides(
    'mesh.sequence',
    mesh.sequence,
    'rollout.max_response_tokens',
    rollout.max_response_tokens,
  )
  if wrong:
    raise ValueError('; '.join(wrong))


def _check_baseline(
  config: ExperimentConfig, baseline: method_lib.Method
) -> None:
  """Raises ValueError if the baseline does not fit the run."""
  try:
    _check_method(config, baseline)
  except ValueError as error:
    raise ValueError(f'diagnostics.baseline: {error}') from None


def _check_averages(config: ExperimentConfig) -> None:
  """Raises ValueError if an average would lose what it is given."""
  model = config.model
  if model.param_dtype == 'float32' or model.lora_rank:
    return
  for name, rule in config.method.policies().items():
    if rule.needs_float32:
      raise ValueError(
        f'model.param_dtype = {model.param_dtype!r}, but small changes of '
        f'{name}, kept by {type(rule).__name__}, would be rounded away: set '
        "model.param_dtype = 'float32'"
      )


def _check_rows(config: ExperimentConfig) -> None:
  """Raises ValueError if a method cannot train on rows of any groups."""
  update, method = config.update, config.method
  if update.minibatch_rows is None:
    return
  start = f'update.minibatch_rows = {update.minibatch_rows}'
  if update.minibatch_prompts is not None:
    raise ValueError(
      f'{start} with update.minibatch_prompts = {update.minibatch_prompts}: a '
      'minibatch is of rows or of groups'
    )
  pieces = (*method.losses, *method.weights)
  rule = method.aggregation
  reading = [
    type(piece).__name__
    for piece in pieces
    if not piece.per_token or piece.min_group_size > 1
  ]
  for value, what in (
    (method.pairs, 'method.pairs'),
    (method.rollout, 'method.rollout'),
    (config.diagnostics.influence_every, 'diagnostics.influence_every'),
    (rule is not None and rule.by_group, type(rule).__name__),
    (reading, ', '.join(reading)),
  ):
    if value:
      raise ValueError(
        f'{start} with {what}, which needs whole groups or all rows of a '
        'rollout: set update.minibatch_prompts in its place'
      )


def _check_evaluation(config: ExperimentConfig) -> None:
  """Raises ValueError if an evaluation would have nothing to measure."""
  settings = config.evaluation
  for transform in settings.transforms:
    if not isinstance(transform, method_lib.ROLES['logits']):
      raise ValueError(
        f'evaluation.transforms holds {type(transform).__name__}, which is '
        'not a piece of rl_jax.pieces.logits'
      )
  recorded = config.rollout.recorded_prompts and settings.split is not None
  if settings.every and not (settings.sample or recorded):
    raise ValueError(
      'evaluation.sample = False measures only recorded rows of '
      'evaluation.split, which needs rollout.recorded_prompts > 0 and a split'
    )


def _check_device_verifier(config: ExperimentConfig) -> None:
  """Raises ValueError if rewards cannot come from tokens only."""
  name = type(config.task).__name__
  if not config.task.supports('reward_device'):
    raise ValueError(
      f'verifier.on_device = True, but {name} has no device verifier '
      '(reward_device)'
    )
  if any(one.task is not None for one in config.evaluation.sets):
    raise ValueError(
      'evaluation.sets with their own tasks need verifier.on_device = False'
    )
  for field, value in (
    ('verifier.num_workers', config.verifier.num_workers),
    ('rollout.stop', config.rollout.stop),
  ):
    if value:
      raise ValueError(
        f'{field} = {value!r} with verifier.on_device = True: device verifiers '
        'have no workers, and support only the end token'
      )


# The first words of the names of metrics: WORD/NAME.
METRIC_WORDS = (
  *('batch', 'calls', 'episode', 'evaluation', 'influence', 'policy'),
  *('preference', 'reward', 'rollout', 'time', 'train', 'value'),
)


def check_stopping_metric(name: str | None, every: int, method: Any) -> None:
  """Raises ValueError if no row of a run could have the metric.

  What follows the word is known when the first row is; metrics of pieces that
  are not of rl_jax may have any name. every: iterations between evaluations.
  """
  if name is None:
    return
  word = name.partition('/')[0]
  modules = {type(piece).__module__ for _, piece in method.pieces()}
  closed = all(module.startswith('rl_jax.') for module in modules)
  if word not in METRIC_WORDS and closed:
    raise ValueError(
      f'stopping.metric = {name!r}: metrics begin with one of '
      f'{", ".join(METRIC_WORDS)}, and a slash'
    )
  if word == 'evaluation' and not every:
    raise ValueError(
      f'stopping.metric = {name!r}, but evaluation.every = 0: never evaluated'
    )
