"""MaxMin-RLHF: reward models of groups of annotators, by hard EM."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.edges import edge_mean, ends, live_weights
from rl_jax.pieces.ops.masking import last_token
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, static


@piece
class AnnotatorMixture(Loss):
  """L = mean over pairs of -ls(r_u(win) - r_u(lose)), u the group of who chose.

    u(h) <- argmax_u sum of ls(r_u(win) - r_u(lose)) over the pairs of annotator
            h in the last `period` steps, of these steps' r   (every period)
    L   += center mean over pairs and u of (r_u(win) + r_u(lose))^2

  r_u is value head u after the last trained token; the heads share all layers.
  Groups are drawn at first, and change only between steps; no gradient passes
  the choice. Comparisons fix r_u up to a number, so `center` puts all r_u
  around 0 on the data, which a least mean over groups needs. An annotator
  without a pair in a period keeps the group.
  Source: "MaxMin-RLHF: Alignment with Diverse Human Preferences" (from memory
  of the paper: their own models, a full E-step after each M-step).
  """

  groups: int = ranged(2, 1, static=True)
  annotators: int = ranged(11, 1, static=True)
  period: int = ranged(60, 1, static=True)  # one pass over the data, say
  center: float = ranged(0.01, 0.0)
  seed: int = static(default=0)
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2
  needs = ('value_heads_after',)
  off_policy = True

  @property
  def num_values(self) -> int:
    """A head for each group."""
    return self.groups

  def check(self, context: CheckContext) -> None:
    """Raises ValueError without pairs, or if the task has other annotators."""
    if context.method is not None and context.method.pairs is None:
      raise ValueError(
        'method.losses.AnnotatorMixture compares samples: set '
        'method.pairs=RecordedPairs()'
      )
    found = None if context.task is None else context.task.annotators
    if found is not None and found != self.annotators:
      raise ValueError(
        f'method.losses.AnnotatorMixture.annotators = {self.annotators}, but '
        f'task.annotators = {found}: set both alike'
      )

  def init(self, num_prompts: int) -> dict[str, Array]:
    """Groups by chance, and no sums yet."""
    del num_prompts
    key, shape = jax.random.key(self.seed), (self.annotators,)
    return {
      'group_A': jax.random.randint(key, shape, 0, self.groups),
      'total_AU': jnp.zeros((*shape, self.groups), jnp.float32),
      'steps': jnp.zeros((), jnp.int32),
    }

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar, metrics and the next groups."""
    traj, state = ctx.traj, ctx.state
    heads_BTU = ctx.stats['value_heads_after'][..., : self.groups]
    pairs = [
      ends(last_token(heads_BTU[..., u], traj.mask_BT), traj.edges)
      for u in range(self.groups)
    ]
    weight_NE = live_weights(traj)
    live_NE = (weight_NE != 0).astype(jnp.float32)
    win_NEU, lose_NEU = (
      jnp.where(live_NE[..., None] > 0, jnp.stack(x, axis=-1), 0.0)
      for x in zip(*pairs, strict=True)
    )
    likelihood_NEU = jax.nn.log_sigmoid(win_NEU - lose_NEU)
    annotator_B = row_inputs.read(traj, 'annotator_B')
    annotator_NE, _ = ends(annotator_B.astype(jnp.int32), traj.edges)
    group_NE = state['group_A'][annotator_NE]
    own_NEU = jax.nn.one_hot(group_NE, self.groups)
    own_NE = (own_NEU * likelihood_NEU).sum(-1)
    away_NE = ((win_NEU + lose_NEU) ** 2).mean(-1)
    loss = edge_mean(self.center * away_NE - own_NE, weight_NE)
    whose_NEA = jax.nn.one_hot(annotator_NE, self.annotators)
    more_AU = jnp.einsum(
      'nea,neu->au', whose_NEA, likelihood_NEU * live_NE[..., None]
    )
    total_AU = state['total_AU'] + more_AU
    best_A = total_AU.argmax(1).astype(state['group_A'].dtype)
    seen_A = (total_AU != 0).any(1)
    steps = state['steps'] + 1
    due = steps % self.period == 0
    group_A = jnp.where(due & seen_A, best_A, state['group_A'])
    right_NE = ((win_NEU - lose_NEU > 0) * own_NEU).sum(-1)
    metrics = {
      'preference/accuracy': edge_mean(right_NE, weight_NE),
      'preference/log_likelihood': edge_mean(own_NE, weight_NE),
      'preference/first_group': (group_A == 0).mean(),
      'preference/moved': (group_A != state['group_A']).mean(),
    }
    next_state = {
      'group_A': group_A,
      'total_AU': jnp.where(due, 0.0, total_AU),
      'steps': steps,
    }
    return LossOut(loss, metrics, next_state)
