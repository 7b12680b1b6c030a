"""The influence of a method and of its pieces on the gradient.

The method, its baseline and the method without a piece see the same rows and
weights. Gradients are those of the policy's weights (a value head and what
pieces learn are left out):

  cos = <g, g'> / (|g| |g'|)      ratio = |g| / |g'|

so a method compared with itself has cos 1 and ratio 1, to rounding. If both
gradients are zero, they are 1 as well; if one is, both numbers are 0.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

from absl import logging
from flax import struct
import jax
import jax.numpy as jnp
import optax

from rl_jax.learning import objective as objective_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward
from rl_jax.method import LOSS_SLOTS, Method, replace_piece
from rl_jax.models import critic
from rl_jax.pieces.ops import groups
from rl_jax.pieces.ops.masking import (
  loss_mask,
  masked_mean,
  safe_divide,
  safe_sqrt,
)
from rl_jax.pieces.roles import (
  Credit,
  CreditContext,
  CreditOut,
  Loss,
  LossContext,
  LossOut,
  Regularizer,
  Shift,
  ValueLoss,
  Weight,
)
from rl_jax.types import LEARNED, POLICY, Array, Metrics, Trajectories, static

METHOD, BASELINE = 'method', 'baseline'
SAME = 1e-5  # relative difference of two pushes that are called equal


class Nothing(Loss, Weight, Credit, struct.PyTreeNode):
  """Replaces a piece, so that the others keep places and keys."""

  slot: str = static()

  def __call__(self, ctx: LossContext | CreditContext) -> LossOut | CreditOut:
    """The reward or advantage as it is, weights of 1, or no loss."""
    if isinstance(ctx, CreditContext):
      return CreditOut(ctx.credit)
    fill = jnp.ones_like if self.slot == 'weights' else jnp.zeros_like
    return LossOut(fill(ctx.traj.mask_BT), {})


def without(method: Method, path: str) -> Method | None:
  """The method with nothing at the path; None if that is not a method."""
  slot = path.split('.')[0]
  if slot in ('aggregation', 'logits', 'pairs'):
    return None
  if slot in ('group_filter', 'value_target'):
    nothing: dict[str, Any] = {slot: None}
    return dataclasses.replace(method, **nothing)
  piece = dict(method.pieces())[path]
  others = (Regularizer, ValueLoss, Shift)
  policies = [x for x in method.losses if not isinstance(x, others)]
  if policies == [piece]:
    return None
  return replace_piece(method, path, Nothing(slot))


def variants(method: Method, baseline: Method) -> dict[str, Method]:
  """METHOD, BASELINE, and by path the method without that piece.

  Methods are resolved: pieces have taken limits from each other.
  """
  found = {METHOD: method, BASELINE: baseline}
  for path, _ in method.pieces():
    rest = without(method, path)
    if rest is not None:
      found[path] = rest
  return found


def lacking(method: Method, baseline: Method) -> list[str]:
  """Paths of the pieces that the baseline does not have, constants included."""
  known = [piece for _, piece in baseline.pieces()]
  return [path for path, piece in method.pieces() if piece not in known]


def tracing(
  function: Callable[..., Any], methods: dict[str, Method]
) -> dict[str, Method]:
  """METHOD, BASELINE, and the others that are methods at all.

  function: of some of the methods; it is traced, not run. A piece may need one
  that was taken out.
  """
  found = {name: methods[name] for name in (METHOD, BASELINE)}
  for path in [name for name in methods if name not in found]:
    always = {name: methods[name] for name in (METHOD, BASELINE)}
    try:
      jax.eval_shape(function, {**always, path: methods[path]})
      found[path] = methods[path]
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
      logging.info('influence: the rest needs %s: %s', path, error)
  return found


def scored(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  methods: dict[str, Method],
) -> Trajectories:
  """Rewarded rows with everything that a method or its baseline reads."""
  method, baseline = methods[METHOD], methods[BASELINE]
  more: tuple[Any, ...] = tuple(piece for _, piece in baseline.pieces())
  both = dataclasses.replace(method, credit=method.credit + more)
  return score_lib.score(forward, params, traj, both)[0]


def batches(
  methods: dict[str, Method], traj: Trajectories, states: dict[str, Any]
) -> dict[str, Trajectories]:
  """make_batch of every method on scored rows.

  states: of the pieces of METHOD and BASELINE, by path, see `states_of`.
  """
  return {
    name: make_batch(method, traj, _own(method, states))[0]
    for name, method in methods.items()
  }


def states_of(
  baseline: Method, states: dict[str, Any], num_prompts: int
) -> dict[str, Any]:
  """The states of the run, and new ones of the baseline's other pieces.

  num_prompts: of the task, as in `learning.state.fresh_state`.
  """
  return {**baseline.init_state(num_prompts), **states}


def rows_changed(
  forward: Forward, params: Any, traj: Trajectories, method: Method
) -> Array:
  """Share of the valid rows that a rollout piece or a transform has changed.

  With transforms of the logits: 1 - mean min(1, p(y) / q(y)), q what was
  sampled from and p the same without transforms: the share of rows that would
  be others under the best coupling of both draws. With a rollout piece: rows of
  which some token has another role or place in the loss than the policy's own,
  or that were drawn from another prompt.
  """
  changed_B = jnp.zeros_like(traj.valid_B)
  if method.logits:
    with_logits, plain = (
      statistics_lib.statistics_in_microbatches(
        forward, params, traj, (), transforms
      )[statistics_lib.LOGP]
      for transforms in (method.logits, ())
    )
    ratio_B = jnp.exp(jnp.minimum((plain - with_logits).sum(axis=1), 0.0))
    changed_B = 1.0 - ratio_B
  if method.rollout is not None:
    own_BT = (traj.kind_BT == POLICY).astype(jnp.float32)
    other_B = (own_BT != traj.mask_BT).any(axis=1)
    other_B |= (traj.kind_BT > POLICY).any(axis=1)
    if 'foreign_B' in traj.extras:
      other_B |= traj.extras['foreign_B'] > 0
    changed_B = jnp.where(other_B, 1.0, changed_B)
  return masked_mean(changed_B, traj.valid_B)


def compare(
  forward: Forward,
  frozen: Any,
  params: Any,
  methods: dict[str, Method],
  trajs: dict[str, Trajectories],
  key: Array,
  states: dict[str, Any],
) -> Metrics:
  """Numbers of one minibatch; trajs: of `batches`, the minibatch's groups.

  Of METHOD against BASELINE `influence/cos`, `ratio`, and of METHOD the share
  of trained tokens with an advantage that the loss does not move,
  `tokens_stopped` (clips, drops). By path, of METHOD against METHOD without
  that piece, `influence/PATH/cos`, `ratio`, and the share of trained tokens
  that it moves otherwise, `tokens`.

  Args:
    frozen: parameters that are not trained, and the named policies.
    key: of the pieces, as in the update.
    states: of the pieces in this step, see `states_of`.
  """
  method = methods[METHOD]
  needs = {statistics_lib.LOGP}
  for name in (METHOD, BASELINE):
    needs |= statistics_lib.model_needs(methods[name], LOSS_SLOTS)
  learned = methods[BASELINE].init_params() | params.get(LEARNED, {})
  rest = {k: params[k] for k in (LEARNED, *critic.PARTS) if k in params}
  trained = {k: x for k, x in params.items() if k not in rest}

  def statistics(trained: Any, rows: Trajectories):
    return statistics_lib.token_statistics(
      forward, {**frozen, **rest, **trained}, rows, needs, method.logits
    )

  rows = statistics_lib.forward_inputs(forward, trajs[METHOD])
  stats, gradient = _with_gradient(statistics, trained, rows, forward)

  pushes = _pushes(methods, stats, trajs, key, states, learned)
  pair = jax.lax.map(gradient, _stack(pushes, (METHOD, BASELINE)))
  mine, other = (jax.tree.map(lambda x, i=i: x[i], pair) for i in (0, 1))
  cos, ratio = _cos_and_ratio(
    optax.tree.vdot(mine, other), _norm(mine), _norm(other)
  )
  found = {
    'influence/cos': cos,
    'influence/ratio': ratio,
    'influence/tokens_stopped': _stopped(pushes[METHOD], trajs[METHOD]),
  }
  return found | _without_pieces(gradient, mine, pushes, trajs)


def _pushes(
  methods: dict[str, Method],
  stats: dict[str, Array],
  trajs: dict[str, Trajectories],
  key: Array,
  states: dict[str, Any],
  learned: dict[str, Any],
) -> dict[str, dict[str, Array]]:
  """Gradient of every method's loss with respect to the statistics."""

  def push(name: str):
    def loss(stats: dict[str, Array]):
      return objective_lib.terms(
        methods[name],
        stats,
        trajs[name],
        key,
        _own(methods[name], states),
        _own(methods[name], learned),
      )[0]

    return jax.grad(loss)(stats)

  return {name: push(name) for name in methods}


def _without_pieces(
  gradient: Callable[..., Any],
  mine: Any,
  pushes: dict[str, dict[str, Array]],
  trajs: dict[str, Trajectories],
) -> Metrics:
  """Compares METHOD (gradient `mine`) with METHOD without a piece, by path."""
  paths = [name for name in pushes if name not in (METHOD, BASELINE)]
  if not paths:
    return {}

  def one(push: dict[str, Array]):
    other = gradient(push)
    return optax.tree.vdot(mine, other), _norm(other)

  dots, norms = jax.lax.map(one, _stack(pushes, paths))
  found: Metrics = {}
  for path, dot, norm in zip(paths, dots, norms, strict=True):
    cos, ratio = _cos_and_ratio(dot, _norm(mine), norm)
    found |= {
      f'influence/{path}/cos': cos,
      f'influence/{path}/ratio': ratio,
      f'influence/{path}/tokens': _moved_otherwise(
        pushes[METHOD], pushes[path], trajs[METHOD], trajs[path]
      ),
    }
  return found


def _stack(pushes: dict[str, dict[str, Array]], names: Sequence[str]):
  return jax.tree.map(
    lambda *x: jnp.stack(x), *[pushes[name] for name in names]
  )


def _with_gradient(
  statistics: Callable[..., Any],
  trained: Any,
  rows: Trajectories,
  forward: Forward,
) -> tuple[dict[str, Array], Callable[..., Any]]:
  """(statistics of the rows, from their cotangents to a float32 gradient)."""
  count = forward.microbatches
  if count == 1:
    stats, vjp = jax.vjp(lambda p: statistics(p, rows), trained)
    return stats, lambda push: optax.tree.cast(vjp(push)[0], jnp.float32)
  split = functools.partial(
    groups.split, num_prompts=rows.num_prompts, pieces=count
  )
  parts = split(rows)
  stats = groups.merge(
    jax.lax.map(lambda part: statistics(trained, part), parts),
    rows.num_prompts,
  )

  def gradient(push: dict[str, Array]):
    def add(total: Any, part: tuple[Trajectories, dict[str, Array]]):
      rows, push = part
      _, vjp = jax.vjp(lambda p: statistics(p, rows), trained)
      more = optax.tree.cast(vjp(push)[0], jnp.float32)
      return jax.tree.map(jnp.add, total, more), None

    zeros = optax.tree.zeros_like(trained, dtype=jnp.float32)
    return jax.lax.scan(add, zeros, (parts, split(push)))[0]

  return stats, gradient


def _own(method: Method, values: dict[str, Any]):
  """The values by path that belong to pieces of the method."""
  return {path: values[path] for path, _ in method.pieces() if path in values}


def _norm(tree: Any):
  return safe_sqrt(jnp.asarray(optax.tree.vdot(tree, tree)))


def _cos_and_ratio(dot: Any, norm: Array, other: Array):
  """Cosine and ratio of norms of two gradients, see the head of this file."""
  none = (norm == 0) & (other == 0)
  cos = safe_divide(safe_divide(dot, norm), other)
  return jnp.where(none, 1.0, cos), jnp.where(
    none, 1.0, safe_divide(norm, other)
  )


def _stopped(push: dict[str, Array], traj: Trajectories):
  """Share of the trained tokens with an advantage that are not moved."""
  wanted_BT = loss_mask(traj) * (traj.advantages_BT != 0)
  still_BT = (push[statistics_lib.LOGP] == 0).astype(jnp.float32)
  return masked_mean(still_BT, wanted_BT)


def _moved_otherwise(
  push: dict[str, Array],
  other_push: dict[str, Array],
  traj: Trajectories,
  other: Trajectories,
):
  """Share of the tokens that either trains with different pushes."""
  a, b = push[statistics_lib.LOGP], other_push[statistics_lib.LOGP]
  size = jnp.maximum(jnp.abs(a), jnp.abs(b))
  differs_BT = (jnp.abs(a - b) > SAME * size).astype(jnp.float32)
  trained_BT = jnp.maximum(loss_mask(traj), loss_mask(other))
  return masked_mean(differs_BT, trained_BT)
