"""Cloning that is conditioned on the return to go, by a decoder of text (LaMo).

The body is the decoder of the library: it may have learned text before, is then
frozen, and gets low-rank adapters (`ModelConfig.lora_rank`). Trained as a whole
from random weights it is a decision transformer.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rl_jax.checks import ranged
from rl_jax.control.base import Actor, Step, declared
from rl_jax.models import heads, spec, transformer
from rl_jax.models.transformer import ModelConfig
from rl_jax.types import Array, Metrics, static

NORM_EPS = 1e-5


def returns_to_go(reward_T: Array, scale: float) -> Array:
  """G_t = (r_t + r_{t+1} + ...) / scale, [..., T]."""
  return jnp.cumsum(reward_T[..., ::-1], axis=-1)[..., ::-1] / scale


def residual(key: Array, inputs: int, outputs: int) -> dict[str, Array]:
  """Weights of x W1 + GELU(x W1) W2."""
  first, second = jax.random.split(key)
  return {
    'first': jax.random.normal(first, (inputs, outputs)) * inputs**-0.5,
    'second': jax.random.normal(second, (outputs, outputs)) * outputs**-0.5,
  }


def apply(block: dict[str, Array], x: Array) -> Array:
  """x W1 + GELU(x W1) W2, [..., outputs]."""
  linear = x @ block['first']
  return linear + jax.nn.gelu(linear) @ block['second']


def text_loss(params: Any, model: ModelConfig, token_BX: Array) -> Array:
  """The mean cross-entropy of the tokens of texts, in nats."""
  B = token_BX.shape[0]
  hidden_BXD = transformer.forward(
    params,
    model,
    jnp.zeros((B, 1), jnp.int32),
    jnp.ones((B, 1)),
    token_BX,
    jnp.ones(token_BX.shape),
  )
  logits_BXV = heads.logits(params, model, hidden_BXD)
  loss_BX = optax.softmax_cross_entropy_with_integer_labels(
    logits_BXV, token_BX
  )
  return loss_BX.mean()


class Episodes(NamedTuple):
  """Episodes of one length, [N, T, ...], with their returns to go."""

  obs: Array
  action: Array
  returns: Array


class Texts(NamedTuple):
  """Token ids of texts [M, X], and how many are drawn for an update."""

  token_MX: Array
  batch: int


class State(NamedTuple):
  """Parameters, and the state of the optimizer of those that are trained."""

  params: dict[str, Any]
  opt: Any


@declared
class Conditioned:
  """The learner. A step is three tokens: return to go, state, action.

    x = LayerNorm(MLP(token)) + time embedding
    L = mean (tanh(MLP(h after s_t)) - a_t)^2 + text L_text

  The last `window` steps are read, and the embedding of token 0 is added to all
  of them. Trained are adapters, the residual MLPs, the norm and the times, and
  with `whole` the body, too. Actions lie within [-1, 1].
  Source: LaMo, models/decision_transformer.py, training/seq_trainer.py.
  """

  model: ModelConfig = static()
  observations: int = ranged(low=1, static=True)
  actions: int = ranged(low=1, static=True)
  window: int = ranged(20, 1, static=True)
  horizon: int = ranged(1000, 1, static=True)  # embeddings of time
  batch: int = ranged(64, 1, static=True)
  whole: bool = static(default=False)
  scale: float = ranged(1.0, 0.0, open_low=True)
  text: float = ranged(0.1, 0.0)
  rate: float = ranged(1e-4, 0.0, open_low=True)

  def init(self, key: Array, body: Any = None) -> dict[str, Any]:
    """Fresh parameters; body: params['model'] of a decoder that is kept."""
    D = self.model.width
    keys = jax.random.split(key, 6)
    params = spec.init(transformer.specs(self.model), keys[0])
    if body is not None:
      params['model'] = body
    return params | {
      'returns': residual(keys[1], 1, D),
      'states': residual(keys[2], self.observations, D),
      'actions': residual(keys[3], self.actions, D),
      'head': residual(keys[4], D, self.actions),
      'times': 0.02 * jax.random.normal(keys[5], (self.horizon, D)),
      'norm': {'scale': jnp.ones(D), 'bias': jnp.zeros(D)},
    }

  @property
  def optimizer(self) -> optax.GradientTransformation:
    """AdamW with gradients clipped to .25."""
    return optax.chain(
      optax.clip_by_global_norm(0.25),
      optax.adamw(self.rate, weight_decay=1e-5),
    )

  def start(self, params: dict[str, Any]) -> State:
    """Before the first update."""
    return State(params, self.optimizer.init(self._parts(params)[0]))

  def _parts(self, params: dict[str, Any]) -> tuple[Any, Any]:
    """The parameters that are trained, and those that are frozen."""
    if self.whole:
      return params, {}
    trained = {name: x for name, x in params.items() if name != 'model'}
    return trained, {'model': params['model']}

  def predicted(self, params: Any, episodes: Episodes, time_BK: Array) -> Array:
    """Actions [B, K, A]; that at k has seen G and s of steps 0 to k."""
    tokens_BK3D = jnp.stack(
      [
        apply(params['returns'], episodes.returns[..., None]),
        apply(params['states'], episodes.obs),
        apply(params['actions'], episodes.action),
      ],
      axis=2,
    )
    mean = tokens_BK3D.mean(axis=-1, keepdims=True)
    variance = tokens_BK3D.var(axis=-1, keepdims=True)
    normed = (tokens_BK3D - mean) * jax.lax.rsqrt(variance + NORM_EPS)
    scale_111D = params['norm']['scale'][None, None, None]
    normed = normed * scale_111D + params['norm']['bias'][None, None, None]
    inputs_BK3D = normed + params['times'][time_BK][:, :, None]
    B, K = time_BK.shape
    inputs_BTD = inputs_BK3D.reshape(B, 3 * K, -1)
    # The state at t has read the tokens before t: one more shows the last.
    inputs_BTD = jnp.pad(inputs_BTD, ((0, 0), (0, 1), (0, 0)))
    tokens = transformer.Tokens(
      jnp.zeros((B, 1), jnp.int32),
      jnp.ones((B, 1)),
      jnp.zeros((B, 3 * K + 1), jnp.int32),
      jnp.ones((B, 3 * K + 1)),
      inputs_BTD=inputs_BTD,
    )
    hidden_BTD = transformer.states(params, self.model, tokens)
    return jnp.tanh(apply(params['head'], hidden_BTD[:, 2::3]))

  def check(self, data: Episodes) -> None:
    """Raises ValueError that names a field of other rows, or a length."""
    shape = jnp.shape(data.returns)
    if len(shape) != 2 or not all(shape):
      raise ValueError(f'Episodes.returns has shape {shape}, expected [N, T]')
    given = (
      ('obs', data.obs, self.observations),
      ('action', data.action, self.actions),
    )
    for name, x, size in given:
      if jnp.shape(x) != (*shape, size):
        raise ValueError(
          f'Episodes.{name} has shape {jnp.shape(x)}, expected '
          f'{(*shape, size)}: every step of every episode has one'
        )
    if not self.window <= shape[1] <= self.horizon:
      raise ValueError(
        f'Episodes.returns has episodes of {shape[1]} steps, expected '
        f'Conditioned.window = {self.window} to horizon = {self.horizon}'
      )

  def drawn(self, data: Episodes, key: Array) -> tuple[Episodes, Array]:
    """(windows [B, K, ...] of random episodes, their times).

    Raises: as check.
    """
    self.check(data)
    row_key, time_key = jax.random.split(key)
    N, T = data.returns.shape
    row_B = jax.random.randint(row_key, (self.batch,), 0, N)
    most = T - self.window + 1
    first_B = jax.random.randint(time_key, (self.batch,), 0, most)
    time_BK = first_B[:, None] + jnp.arange(self.window)[None]
    rows = row_B[:, None], time_BK
    return jax.tree.map(lambda x: x[rows], data), time_BK

  def loss(
    self, params: Any, data: Episodes, texts: Texts | None, key: Array
  ) -> tuple[Array, Metrics]:
    """L on windows and on texts that are drawn."""
    first, second = jax.random.split(key)
    windows, time_BK = self.drawn(data, first)
    made = self.predicted(params, windows, time_BK)
    cloned = ((made - windows.action) ** 2).mean()
    if texts is None:
      return cloned, {'cloned': cloned}
    count = texts.token_MX.shape[0]
    row_B = jax.random.randint(second, (texts.batch,), 0, count)
    read = text_loss(params, self.model, texts.token_MX[row_B])
    return cloned + self.text * read, {'cloned': cloned, 'text': read}

  def update(
    self, state: State, data: Episodes, texts: Texts | None, key: Array
  ) -> tuple[State, Metrics]:
    """One step; without texts L has its first term only."""
    trained, frozen = self._parts(state.params)

    def loss(trained: Any) -> tuple[Array, Metrics]:
      return self.loss(trained | frozen, data, texts, key)

    grads, metrics = jax.grad(loss, has_aux=True)(trained)
    moves, opt = self.optimizer.update(grads, state.opt, trained)
    new: Any = optax.apply_updates(trained, moves)
    return State(new | frozen, opt), metrics

  def fit(
    self,
    params: dict[str, Any],
    data: Episodes,
    texts: Texts | None,
    key: Array,
    steps: int,
  ) -> tuple[State, Metrics]:
    """The state after so many updates, and metrics [steps]; to be jitted."""

    def one(state: State, number: Array) -> tuple[State, Metrics]:
      return self.update(state, data, texts, jax.random.fold_in(key, number))

    return jax.lax.scan(one, self.start(params), jnp.arange(steps))


class Context(NamedTuple):
  """The memory of an Aiming: the last steps, and the return that is left."""

  steps: Episodes  # [K, ...]
  time_K: Array
  age: Array  # steps of the episode so far
  left: Array  # scaled


@declared
class Aiming(Actor):
  """Acts for a return: `target`, less what it has earned in the episode."""

  learner: Conditioned
  params: Any
  target: Array

  def init(self, key: Array) -> Context:
    """Nothing was seen."""
    del key
    learner, K = self.learner, self.learner.window
    steps = Episodes(
      jnp.zeros((K, learner.observations)),
      jnp.zeros((K, learner.actions)),
      jnp.zeros(K),
    )
    left = jnp.float32(self.target) / learner.scale
    return Context(steps, jnp.zeros(K, jnp.int32), jnp.int32(0), left)

  def act(
    self, memory: Context, obs: Array, key: Array
  ) -> tuple[Array, Context]:
    """The predicted action."""
    del key
    learner = self.learner
    full = memory.age >= learner.window
    place = jnp.minimum(memory.age, learner.window - 1)
    steps, time_K = jax.tree.map(
      lambda x: jnp.where(full, jnp.roll(x, -1, axis=0), x),
      (memory.steps, memory.time_K),
    )
    time = jnp.minimum(memory.age, learner.horizon - 1)
    time_K = time_K.at[place].set(time)
    steps = steps._replace(
      obs=steps.obs.at[place].set(obs),
      action=steps.action.at[place].set(0.0),
      returns=steps.returns.at[place].set(memory.left),
    )
    single = jax.tree.map(lambda x: x[None], steps)
    action = learner.predicted(self.params, single, time_K[None])[0, place]
    steps = steps._replace(action=steps.action.at[place].set(action))
    return action, memory._replace(
      steps=steps, time_K=time_K, age=memory.age + 1
    )

  def learn(self, memory: Context, step: Step) -> Context:
    """Subtracts the reward; an episode begins without a past."""
    left = memory.left - step.reward / self.learner.scale
    fresh = self.init(jax.random.key(0))
    return jax.tree.map(
      lambda a, b: jnp.where(step.last, a, b),
      fresh,
      memory._replace(left=left),
    )
