"""The optimizer as an optax chain from one small configuration."""

from collections.abc import Callable, Mapping
import dataclasses
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import optax

from rl_jax import checks
from rl_jax.checks import INT32, checked, chosen, ranged
from rl_jax.learning import critic_steps, eight_bit, schedules
from rl_jax.learning.master_weights import with_master_weights
from rl_jax.models import lora
from rl_jax.overrides import unknown_name
from rl_jax.types import Array

_ADAMW = ('b1', 'b2', 'eps', 'weight_decay', 'moment_dtype')


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class OptimizerConfig:
  """Clipping by global norm, an optimizer, and a schedule of its rate.

  name: a factory of optax with a learning rate, as 'lion', or 'contrib.muon'.
  arguments: of that factory, by name. b1 to moment_dtype are those of AdamW and
    must be left unchanged with another.
  schedule, schedule_arguments: see schedules.make, after a linear warm-up of
    warmup_steps, which are optimizer steps or, by warmup_unit, the steps of so
    many rollouts.
  total_steps: optimizer steps until the schedule ends; None: those of all
    iterations.
  clip_norm: of the policy and, with separate layers, of the critic; None: no
    clipping.
  critic_multiplier: of the rate of the value head and of the critic's own
    layers (model.critic).

  Raises: ValueError for an unknown name, with the nearest.
  """

  learning_rate: float = ranged(1e-6, 0.0)
  schedule: str = 'constant'
  warmup_steps: int = ranged(0, 0, INT32)
  total_steps: int | None = None
  b1: float = ranged(0.9, 0.0, 1.0, open_high=True)
  b2: float = ranged(0.999, 0.0, 1.0, open_high=True)
  eps: float = ranged(1e-8, 0.0, open_low=True)
  weight_decay: float = ranged(0.0, 0.0)
  clip_norm: float | None = ranged(1.0, 0.0, open_low=True)
  critic_multiplier: float = ranged(1.0, 0.0, open_low=True)
  # Of the first moment; the second would lose its changes in bfloat16. 'int8':
  # both in 8 bits, see eight_bit.
  moment_dtype: str = chosen('float32', ('float32', 'bfloat16', 'int8'))
  name: str = 'adamw'
  arguments: dict[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  schedule_arguments: dict[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  warmup_unit: str = chosen('steps', ('steps', 'rollouts'))

  def __post_init__(self):
    schedules.check(self.schedule, self.schedule_arguments)
    given = set(self.arguments) & {'learning_rate', 'mu_dtype', *_ADAMW}
    if self.name == 'adamw':
      if given:
        raise ValueError(
          f'optimizer.arguments has {sorted(given)}: for AdamW these are '
          'fields, as optimizer.b1 and optimizer.moment_dtype'
        )
      if self.arguments and self.moment_dtype == 'int8':
        raise ValueError(
          f"optimizer.moment_dtype = 'int8' takes no optimizer.arguments, but "
          f'these are {self.arguments}'
        )
    else:
      self._check_fields()
    _check_arguments(self.name, self.arguments)

  def _check_fields(self):
    if self.name == 'contrib.galore':
      raise ValueError(
        "optimizer.name = 'contrib.galore' projects arrays of two axes only, "
        'and the weights of layers are stacked: optimizer.moment_dtype='
        "'int8' or model.lora_rank need less memory, too"
      )
    values = checks.values(self)
    for field in dataclasses.fields(self):
      value = values[field.name]
      if field.name in _ADAMW and value != field.default:
        raise ValueError(
          f'optimizer.{field.name} = {value!r} is of AdamW, but optimizer.name '
          f'= {self.name!r}: give it in optimizer.arguments'
        )

  @property
  def needs_total_steps(self) -> bool:
    """Returns whether the rate depends on the number of steps of the run."""
    return schedules.needs_steps(self.schedule, self.schedule_arguments)


def schedule(
  config: OptimizerConfig, learning_rate: jax.Array | None = None
) -> optax.Schedule:
  """Learning rate by optimizer step: linear warm-up, then the schedule.

  learning_rate: in place of the configuration's, a number or a traced scalar.

  Raises:
    ValueError: the schedule ends, but at no known step, or its warm-up is of
      rollouts, whose steps only a run knows (config.optimizer_of).
  """
  if config.warmup_unit != 'steps' and config.warmup_steps:
    raise ValueError(
      f'OptimizerConfig.warmup_unit = {config.warmup_unit!r}: the steps of a '
      'rollout are known in a run only'
    )
  if config.needs_total_steps and config.total_steps is None:
    raise ValueError(
      f'OptimizerConfig.schedule = {config.schedule!r} needs total_steps'
    )
  peak = config.learning_rate if learning_rate is None else learning_rate
  rest = max((config.total_steps or 0) - config.warmup_steps, 1)
  after = schedules.make(config.schedule, config.schedule_arguments, peak, rest)
  if not config.warmup_steps:
    return after
  # Step 0 already learns: a first step of rate zero would waste a rollout.
  first = peak / (config.warmup_steps + 1)
  warmup = optax.linear_schedule(first, peak, config.warmup_steps)
  return optax.join_schedules([warmup, after], [config.warmup_steps])


def make_optimizer(
  config: OptimizerConfig, learning_rate: jax.Array | None = None
) -> optax.GradientTransformation:
  """Clip by global norm, then the optimizer, on float32 master weights.

  Raises ValueError if optax refuses the arguments, or if an update needs more
  than gradients and parameters.
  """
  rate = schedule(config, learning_rate)
  if config.moment_dtype == 'int8':
    chain = optax.chain(
      eight_bit.scale_by_adam(config.b1, config.b2, config.eps),
      optax.add_decayed_weights(config.weight_decay),
      optax.scale_by_learning_rate(rate),
    )
  elif config.name == 'adamw':
    chain = optax.adamw(
      rate,
      b1=config.b1,
      b2=config.b2,
      eps=config.eps,
      weight_decay=config.weight_decay,
      mu_dtype=jnp.dtype(config.moment_dtype),
      **config.arguments,
    )
  else:
    chain = _other(config, rate, learning_rate)
  if config.clip_norm is not None:
    chain = optax.chain(critic_steps.clip_by_norm(config.clip_norm), chain)
  if config.critic_multiplier != 1:
    scale = critic_steps.scale_critic(config.critic_multiplier)
    chain = optax.chain(chain, scale)
  return with_master_weights(chain)


def _other(config: OptimizerConfig, rate: Any, learning_rate: Any):
  """An optimizer of optax, tried on two small weights."""
  tried = {'w': jnp.zeros((2, 2)), 'b': jnp.zeros(2)}
  rates = [rate]
  if config.schedule == 'constant' and not config.warmup_steps:
    # A few take no schedule.
    rates.append(
      config.learning_rate if learning_rate is None else learning_rate
    )
  arguments = dict(config.arguments)
  if config.name == 'contrib.muon':
    arguments.setdefault('muon_weight_dimension_numbers', muon_matrices)
  problem = ''
  for value in rates:
    try:
      made = _factories()[config.name](learning_rate=value, **arguments)
      state = jax.eval_shape(made.init, tried)
      jax.eval_shape(made.update, tried, state, tried)
      return made
    except (TypeError, ValueError, AttributeError) as error:
      first = str(error).partition('\n')[0]
      problem = f'{type(error).__name__}: {first}'
  raise ValueError(
    f'optimizer.name = {config.name!r} cannot be used with optimizer.arguments '
    f'= {config.arguments} and this schedule: {problem}'
  )


def _factories() -> dict[str, Callable[..., Any]]:
  """The optimizers of optax, those of optax.contrib with its name before."""
  import optax.contrib  # slow, and rarely needed

  return {
    f'{prefix}{name}': value
    for prefix, module in (('', optax), ('contrib.', optax.contrib))
    for name, value in vars(module).items()
    if inspect.isfunction(value)
    and not name.startswith(('_', 'scale_by_'))
    and 'learning_rate' in inspect.signature(value).parameters
  }


def _check_arguments(name: str, arguments: Mapping[str, Any]):
  """Raises ValueError for a name or an argument that optax does not have."""
  if name == 'adamw' and not arguments:
    return
  if name not in _factories():
    text = unknown_name('optimizer', name, _factories())
    raise ValueError(f'optimizer.name: {text}')
  known = set(inspect.signature(_factories()[name]).parameters)
  known.discard('learning_rate')
  for argument in arguments:
    if argument not in known:
      text = unknown_name(f'argument of {name!r}', argument, known)
      raise ValueError(f'optimizer.arguments: {text}')


_HEADS = ('wq', 'wk', 'wv')  # outputs [heads, head size]


def muon_matrices(params: Any) -> Any:
  """MuonDimensionNumbers of the matrices, None of what Adam steps.

  Matrices are the weights of layers that may have adapters, and adapters, each
  of its own layer and expert: axes in front of inputs and outputs are stacks.
  By default Muon would take every array of two axes: embeddings, and the scales
  of norms [L, D], but no weight of a layer, as these are stacked.
  """
  return jax.tree.map_with_path(_dimensions, params)


def _dimensions(path: Any, weight: Array):
  from optax.contrib import MuonDimensionNumbers  # slow, and rarely needed

  names = [x.key for x in path if isinstance(x, jax.tree_util.DictKey)]
  known = [name for name in names if name in lora.TARGETS]
  if not known:
    return None
  inputs = lora.num_inputs(known[0])
  outputs = 2 if known[0] in _HEADS else 1
  inputs = 1 if names[-1] == 'b' else inputs  # of rank
  outputs = 1 if names[-1] == 'a' else outputs
  axes = tuple(range(weight.ndim - inputs - outputs, weight.ndim))
  return MuonDimensionNumbers(axes[:inputs], axes[inputs:])
