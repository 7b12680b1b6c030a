"""The optimizer as an optax chain from one small configuration."""

import dataclasses

import jax
import jax.numpy as jnp
import optax

from rl_jax.checks import checked, chosen, ranged


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class OptimizerConfig:
  """AdamW with global-norm clipping and a schedule over optimizer steps."""

  learning_rate: float = ranged(1e-6, 0.0)
  # Linear and cosine: to zero at total_steps; None: those of all iterations.
  schedule: str = chosen('constant', ('constant', 'linear', 'cosine'))
  warmup_steps: int = ranged(0, 0)
  total_steps: int | None = None
  b1: float = ranged(0.9, 0.0, 1.0, open_high=True)
  b2: float = ranged(0.999, 0.0, 1.0, open_high=True)
  eps: float = ranged(1e-8, 0.0, open_low=True)
  weight_decay: float = ranged(0.0, 0.0)
  clip_norm: float | None = ranged(1.0, 0.0, open_low=True)
  # Of the first moment; bfloat16 saves memory.
  moment_dtype: str = chosen('float32', ('float32', 'bfloat16'))


def schedule(
  config: OptimizerConfig, learning_rate: jax.Array | None = None
) -> optax.Schedule:
  """Learning rate by optimizer step: linear warm-up, then the schedule.

  learning_rate: in place of the configuration's, a number or a traced scalar.

  Raises:
    ValueError: the schedule ends, but at no known step.
  """
  if config.schedule != 'constant' and config.total_steps is None:
    raise ValueError(
      f'OptimizerConfig.schedule = {config.schedule!r} needs total_steps'
    )
  peak = config.learning_rate if learning_rate is None else learning_rate
  rest = max((config.total_steps or 0) - config.warmup_steps, 1)
  after = {
    'constant': lambda: optax.constant_schedule(peak),
    'linear': lambda: optax.linear_schedule(peak, 0.0, rest),
    'cosine': lambda: optax.cosine_decay_schedule(peak, rest),
  }[config.schedule]()
  if not config.warmup_steps:
    return after
  # Step 0 already learns: a first step of rate zero would waste a rollout.
  first = peak / (config.warmup_steps + 1)
  warmup = optax.linear_schedule(first, peak, config.warmup_steps)
  return optax.join_schedules([warmup, after], [config.warmup_steps])


def make_optimizer(
  config: OptimizerConfig, learning_rate: jax.Array | None = None
) -> optax.GradientTransformation:
  """Clip by global norm, then AdamW; moments in float32 by default."""
  adam = optax.adamw(
    schedule(config, learning_rate),
    b1=config.b1,
    b2=config.b2,
    eps=config.eps,
    weight_decay=config.weight_decay,
    mu_dtype=jnp.dtype(config.moment_dtype),
  )
  if config.clip_norm is None:
    return adam
  return optax.chain(optax.clip_by_global_norm(config.clip_norm), adam)
