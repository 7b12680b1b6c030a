"""Offline preferences without a reward model (OPPO): the best embedding.

Segments are embedded, a policy imitates them given the embedding, and an
embedding w is learned that is near the preferred and far from the others. To
act is to imitate with z = w.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rl_jax.checks import ranged
from rl_jax.control import networks
from rl_jax.control.base import Actor, declared
from rl_jax.types import Array, Metrics

MARGIN = 1.0


def distance(x: Array, y: Array) -> Array:
  """|x - y|, [...]; its gradient at 0 is 0."""
  square = ((x - y) ** 2).sum(axis=-1)
  positive = square > 0
  return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


def triplet(w: Array, preferred: Array, other: Array) -> Array:
  """max(0, |w - z+| - |w - z-| + 1), [...]."""
  gap = distance(w, preferred) - distance(w, other)
  return jnp.maximum(0.0, gap + MARGIN)


def norm_term(z: Array) -> Array:
  """(|z| - 1)^2, [...]."""
  return (distance(z, jnp.zeros_like(z)) - 1) ** 2


class Segments(NamedTuple):
  """Pieces of histories, [N, T, ...]."""

  obs: Array
  action: Array


def check_segments(data: Segments, score_N: Array) -> None:
  """Raises ValueError that names a field of other rows or lengths."""
  shapes = jnp.shape(data.obs), jnp.shape(data.action)
  if len(shapes[0]) != 3 or not all(shapes[0]):
    raise ValueError(
      f'Segments.obs has shape {shapes[0]}, expected [N, T, S]: segments of '
      'unequal length are cut to one'
    )
  if len(shapes[1]) != 3 or shapes[1][:2] != shapes[0][:2]:
    raise ValueError(
      f'Segments.action has shape {shapes[1]}, Segments.obs {shapes[0]}: every '
      'state needs its action'
    )
  if jnp.shape(score_N) != shapes[0][:1]:
    raise ValueError(
      f'score_N has shape {jnp.shape(score_N)}, but there are {shapes[0][0]} '
      'segments'
    )


class State(NamedTuple):
  """Parameters with their optimizers, and w with its own."""

  params: Any
  opt: Any
  w: Array
  opt_w: Any


@declared
class Preferred:
  """The learner.

    step 1, on encoder and policy:  L_rec + pull L_pref + norm L_norm
    step 2, on w only:              L_pref, with embeddings that are fixed

  L_rec = mean (pi(s, z) - a)^2 over both segments of a pair, w is fixed in step
  1. Encoder: a network of every (s, a), whose mean is mapped to z; policy: a
  network of (s, z). The published ones are transformers, which a world without
  hidden state does not need. Source: OPPO, training/pdt_trainer.py (scripted).
  """

  size: int = ranged(8, 1, static=True)  # of embeddings
  width: int = ranged(64, 1, static=True)
  batch: int = ranged(32, 1, static=True)  # pairs
  pull: float = ranged(0.1, 0.0)
  norm: float = ranged(0.1, 0.0)
  rate: float = ranged(1e-3, 0.0, open_low=True)
  rate_w: float = ranged(1e-2, 0.0, open_low=True)

  def init(self, data: Segments, key: Array) -> State:
    """w is drawn from 2 N(0, I)."""
    S, A, W = data.obs.shape[-1], data.action.shape[-1], self.width
    keys = jax.random.split(key, 4)
    params = {
      'tokens': networks.mlp(keys[0], (S + A, W, W)),
      'map': networks.mlp(keys[1], (W, self.size)),
      'policy': networks.mlp(keys[2], (S + self.size, W, W, A)),
    }
    w = 2 * jax.random.normal(keys[3], (self.size,))
    return State(params, self._optimizer.init(params), w, self._of_w.init(w))

  @property
  def _optimizer(self) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(0.25), optax.adamw(self.rate))

  @property
  def _of_w(self) -> optax.GradientTransformation:
    return optax.adam(self.rate_w)

  def embed(self, params: Any, data: Segments) -> Array:
    """z of segments [..., T, ...], [..., size]."""
    both = jnp.concatenate([data.obs, data.action], axis=-1)
    tokens = jnp.maximum(networks.apply(params['tokens'], both), 0.0)
    return networks.apply(params['map'], tokens.mean(axis=-2))

  def action(self, params: Any, obs: Array, z: Array) -> Array:
    """The imitated action, within [-1, 1]."""
    z = jnp.broadcast_to(z, (*obs.shape[:-1], self.size))
    both = jnp.concatenate([obs, z], axis=-1)
    return jnp.tanh(networks.apply(params['policy'], both))

  def update(
    self, state: State, data: Segments, score_N: Array, key: Array
  ) -> tuple[State, Metrics]:
    """Both steps on a batch of pairs; the larger score is preferred.

    Pairs of equal scores are left out.

    Raises: as check_segments.
    """
    check_segments(data, score_N)
    row_B2 = jax.random.randint(key, (self.batch, 2), 0, len(score_N))
    first = score_N[row_B2[:, 0]] >= score_N[row_B2[:, 1]]
    row_B2 = jnp.where(first[:, None], row_B2, row_B2[:, ::-1])
    differ_B = score_N[row_B2[:, 0]] != score_N[row_B2[:, 1]]
    weight_B = differ_B / jnp.maximum(differ_B.sum(), 1)
    pairs = Segments(data.obs[row_B2], data.action[row_B2])

    def loss(params: Any) -> tuple[Array, Metrics]:
      z_B2D = self.embed(params, pairs)
      made = self.action(params, pairs.obs, z_B2D[:, :, None])
      rebuilt = ((made - pairs.action) ** 2).mean()
      w_1D = jax.lax.stop_gradient(state.w)[None]
      pulled = (weight_B * triplet(w_1D, z_B2D[:, 0], z_B2D[:, 1])).sum()
      total = rebuilt + self.pull * pulled
      total += self.norm * norm_term(z_B2D).mean()
      return total, {'rebuilt': rebuilt, 'triplet': pulled}

    grads, metrics = jax.grad(loss, has_aux=True)(state.params)
    moves, opt = self._optimizer.update(grads, state.opt, state.params)
    params = optax.apply_updates(state.params, moves)
    z_B2D = self.embed(params, pairs)

    def loss_w(w: Array) -> Array:
      return (weight_B * triplet(w[None], z_B2D[:, 0], z_B2D[:, 1])).sum()

    found = self._of_w.update(jax.grad(loss_w)(state.w), state.opt_w)
    moves_w: Any = found[0]
    w = state.w + jnp.where(self.pull > 0, moves_w, 0.0)
    return State(params, opt, w, found[1]), metrics

  def fit(
    self, data: Segments, score_N: Array, key: Array, steps: int
  ) -> tuple[State, Metrics]:
    """The state after so many updates, and metrics [steps]; to be jitted."""

    def one(state: State, number: Array) -> tuple[State, Metrics]:
      return self.update(state, data, score_N, jax.random.fold_in(key, number))

    start = self.init(data, jax.random.fold_in(key, steps))
    return jax.lax.scan(one, start, jnp.arange(steps))


@declared
class Imitating(Actor):
  """Acts as segments with an embedding."""

  learner: Preferred
  params: Any
  z: Array

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """The imitated action."""
    del key
    return self.learner.action(self.params, obs, self.z), memory
