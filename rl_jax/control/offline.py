"""Offline actor-critic learners made of pieces: critic, constraint, balance.

    Offline()                                      TD3+BC
    Offline(constraint=Free())                     TD3
    Offline(constraint=Nearest(beta=2.0))          PRDC
    Offline(constraint=Advantaged())               A2PR
    Offline(critic=Expectile(), constraint=Weighted())                   IQL
    Offline(critic=Expectile(), constraint=Weighted(), balance=Family()) FamO2O

One update is a pure function, and a run is one scan (`fit`).
"""

from typing import Any, NamedTuple

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rl_jax.checks import chosen, ranged
from rl_jax.control import networks
from rl_jax.control.base import Actor, declared
from rl_jax.control.unroll import Steps
from rl_jax.types import Array, Metrics, static

WEIGHT_LIMIT = 100.0  # of exp(b A)
NEAREST = 64  # states that are tabulated for each row
SD_ADDED = 1e-3  # to standard deviations of states


class DataSet(struct.PyTreeNode, kw_only=True):
  """Transitions [N, ...]; done is 1 at a true end, where nothing follows."""

  obs: Array
  action: Array
  reward: Array
  next_obs: Array
  done: Array  # float32

  @property
  def size(self) -> int:
    """N."""
    return self.reward.shape[0]


def transitions(steps: Steps) -> DataSet:
  """All transitions of histories [B, T, ...], valid or not; to be traced.

  Raises: ValueError without successors.
  """
  if steps.next_obs is None:
    raise ValueError(
      'Steps.next_obs is None: an offline set needs the successors of states'
    )

  def flat(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])

  return DataSet(
    obs=flat(steps.obs),
    action=flat(steps.action),
    reward=flat(steps.reward),
    next_obs=flat(steps.next_obs),
    done=flat(steps.done).astype(jnp.float32),
  )


def data_set(steps: Steps) -> DataSet:
  """The valid transitions of histories [B, T, ...], on the host.

  Raises: ValueError without successors, without a valid step, or as check_data.
  """
  data = transitions(steps)
  valid = np.asarray(steps.valid).reshape(-1) > 0
  if not valid.any():
    raise ValueError('Steps.valid: no step is valid')
  data = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[valid]), data)
  check_data(data)
  return data


def check_data(data: DataSet) -> None:
  """Raises ValueError that names a field of another length or not finite."""
  check_forms(data)
  for name, x in vars(data).items():
    if not np.isfinite(np.asarray(x)).all():
      raise ValueError(f'DataSet.{name} has a number that is not finite')


def check_forms(data: DataSet) -> None:
  """Raises ValueError that names a field without a row for each reward.

  Values are not read, so that it can be traced.
  """
  if len(jnp.shape(data.reward)) != 1 or not data.size:
    raise ValueError(
      f'DataSet.reward has shape {jnp.shape(data.reward)}, expected [N]'
    )
  for name, x in vars(data).items():
    shape = None if x is None else jnp.shape(x)
    if shape is None or shape[:1] != (data.size,):
      raise ValueError(
        f'DataSet.{name} has shape {shape}, but there are {data.size} rewards'
      )
  for name, x in (('obs', data.obs), ('action', data.action)):
    if x.ndim != 2 or not jnp.issubdtype(x.dtype, jnp.floating):
      raise ValueError(
        f'DataSet.{name} is {x.dtype}{list(x.shape)}, expected rows of real '
        'numbers: of a Discrete space take space.features(x)'
      )
  if data.next_obs.shape != data.obs.shape:
    raise ValueError(
      f'DataSet.next_obs has shape {data.next_obs.shape}, DataSet.obs '
      f'{data.obs.shape}: every state needs its successor'
    )


def nearest_states(obs_NS: Array, number: int) -> tuple[Array, Array]:
  """(rows [N, number], distances [N]) of the nearest states of every state.

  The distance is that of the last of them; rows of equal states count, too.
  """

  def one(obs_S: Array) -> tuple[Array, Array]:
    square_N = ((obs_NS - obs_S[None]) ** 2).sum(axis=1)
    far_M, row_M = jax.lax.top_k(-square_N, number)
    return row_M, jnp.sqrt(-far_M[-1])

  return jax.lax.map(one, obs_NS, batch_size=256)


class Batch(NamedTuple):
  """Rows that were drawn, with their numbers in the data set."""

  obs: Array
  action: Array
  reward: Array
  next_obs: Array
  done: Array
  row: Array


class Context(NamedTuple):
  """The arguments of a constraint."""

  params: Any
  batch: Batch
  proposed: Array  # mu(s), with a gradient
  key: Array
  data: DataSet
  tables: Any  # of the constraint


@declared
class DoubleQ:
  """y = r + gamma (1 - d) min_i Qbar_i(s', mubar(s') + clipped noise).

  L = sum_i mean (Q_i(s, a) - y)^2, as TD3.
  """

  noise: float = ranged(0.2, 0.0)
  noise_clip: float = ranged(0.5, 0.0)


@declared
class Expectile:
  """L_V = mean |tau - 1{u < 0}| u^2, u = min Qbar(s, a) - V(s).

  The target of Q is r + gamma (1 - d) V(s'). Source: IQL.
  """

  tau: float = ranged(0.9, 0.0, 1.0, open_low=True, open_high=True)


def expectile_loss(u: Array, tau: float | Array) -> Array:
  """|tau - 1{u < 0}| u^2."""
  return jnp.where(u < 0, 1 - tau, tau) * u**2


@declared
class ToData:
  """(mu(s) - a)^2, mean over rows and numbers of an action. Source: TD3+BC."""


@declared
class Free:
  """Nothing: TD3."""


@declared
class Nearest:
  """(mu(s) - a')^2 with the action a' of the nearest key [beta s, a] to mu(s).

  It has no gradient. Batch states are rows of the data, so their 64 nearest
  states are tabulated once; the result is certain where its distance is at most
  beta times that of the 64th, which `policy/certain` measures.
  Source: PRDC, prdc.py.
  """

  beta: float = ranged(2.0, 0.0)


def nearest_action(
  obs_S: Array,
  proposed_A: Array,
  row_M: Array,
  data: DataSet,
  beta: float | Array,
) -> tuple[Array, Array]:
  """(action, distance) of the nearest key among the given rows."""
  states = ((data.obs[row_M] - obs_S[None]) ** 2).sum(axis=1)
  actions = ((data.action[row_M] - proposed_A[None]) ** 2).sum(axis=1)
  square_M = beta**2 * states + actions
  best = jnp.argmin(square_M)
  return data.action[row_M[best]], jnp.sqrt(square_M[best])


@declared
class Advantaged:
  """mask g (mu - t)^2, t the better of a and an action a~ of a generator.

  a~ = CVAE(s, mu(s)), trained on rows with Q1(s, a) > V(s);
  g = 1{Q1(s, a~) >= V or Q1(s, a) > V}. As in the released code, a~ has a
  gradient. Source: A2PR, A2PR.py.
  """

  mask: float = ranged(0.5, 0.0)
  generator_weight: float = ranged(1.0, 0.0)
  latent: int = ranged(4, 1, static=True)


def advantaged_target(
  made: Array, action: Array, q_made: Array, q_data: Array, value: Array
) -> tuple[Array, Array]:
  """(target t, gate g) of A2PR."""
  target = jnp.where((q_made >= q_data)[..., None], made, action)
  gate = (q_made >= value) | (q_data > value)
  return target, gate.astype(jnp.float32)


@declared
class Weighted:
  """- min(exp(b A), 100) log pi(a | s), A = min Qbar - V. Source: IQL."""

  b: float = ranged(10.0, 0.0)


@declared
class Family:
  """Coefficients b in [low, high] are an input of the actor.

  A balance model chooses b for every state: it is trained offline too, and used
  when acting. drawn: of the b in the actor's loss, 'uniform' on [low, high] for
  offline training, or as the 'balance' model draws them for the online phase.
  Source: FamO2O, jax_iql/family_*.py.
  """

  low: float = ranged(8.0, 0.0)
  high: float = ranged(14.0, 0.0)
  size: int = ranged(6, 2, static=True)  # of the encoding of b
  entropy: float = -0.5  # of the balance model, its target
  drawn: str = chosen('uniform', ('uniform', 'balance'))

  def scaled(self, u: Array) -> Array:
    """From [-1, 1] to [low, high]."""
    return self.low + (u + 1) / 2 * (self.high - self.low)


def encoding(b: Array, size: int) -> Array:
  """sin and cos of b / 10000^(2 i / size), [..., size]."""
  power = 2 * jnp.arange(size // 2) / size
  angle = jnp.tensordot(b, 1e4**-power, axes=0)
  both = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)
  return both.reshape(*b.shape, -1)


class State(NamedTuple):
  """Parameters, their lagged copies, and the optimizers' states."""

  params: dict[str, Any]
  lagged: dict[str, Any]
  opt: Any
  step: Array


@declared
class Offline:
  """A learner. alpha scales Q in the loss of a deterministic actor:

    L = -alpha / sg[mean |Q1|] mean Q1(s, mu(s)) + constraint

  Such an actor, its optimizer and its lagged copies move at every second step.
  Actions lie within [-1, 1]. normalised: networks and keys of Nearest see
  (s - mean) / (sd + .001) of the data's states, as the sources of TD3+BC, PRDC
  and A2PR do on D4RL's locomotion; those of TD3, IQL and FamO2O do not.
  Other defaults are those of the sources but for width, batch and rate.
  """

  critic: DoubleQ | Expectile = DoubleQ()
  constraint: ToData | Free | Nearest | Advantaged | Weighted = ToData()
  balance: Family | None = None
  alpha: float = ranged(2.5, 0.0)
  gamma: float = ranged(0.99, 0.0, 1.0)
  rate: float = ranged(1e-3, 0.0, open_low=True)
  lag: float = ranged(0.005, 0.0, 1.0)  # of Polyak averages
  width: int = ranged(64, 1, static=True)
  batch: int = ranged(128, 1, static=True)
  normalised: bool = static(default=False)

  def __post_init__(self):
    stochastic = isinstance(self.critic, Expectile)
    if stochastic != isinstance(self.constraint, Weighted):
      raise ValueError(
        f'Offline.constraint = {type(self.constraint).__name__} does not fit '
        f'critic = {type(self.critic).__name__}: Expectile goes with Weighted'
      )
    if self.balance is not None and not stochastic:
      raise ValueError('Offline.balance needs critic = Expectile')

  def init(self, data: DataSet, key: Array) -> State:
    """Fresh networks for the data. Raises: as check_forms."""
    check_forms(data)
    S, A, W = data.obs.shape[1], data.action.shape[1], self.width
    extra = 0 if self.balance is None else self.balance.size
    keys = jax.random.split(key, 7)
    params: dict[str, Any] = {
      'actor': networks.mlp(keys[0], (S + extra, W, W, A)),
      'q': [networks.mlp(k, (S + A, W, W, 1)) for k in keys[1:3]],
      'v': networks.mlp(keys[3], (S, W, W, 1)),
      'log_sd': jnp.zeros(A),
    }
    if isinstance(self.constraint, Advantaged):
      Z = self.constraint.latent
      params['encoder'] = networks.mlp(keys[4], (S + A, W, 2 * Z))
      params['decoder'] = networks.mlp(keys[5], (S + Z, W, A))
    if self.balance is not None:
      params['balance'] = networks.mlp(keys[6], (S, W, 2))
      params['log_temperature'] = jnp.float32(0.0)
    if self.normalised:
      mean, sd = data.obs.mean(axis=0), data.obs.std(axis=0) + SD_ADDED
      params['states'] = {'mean': mean, 'sd': sd}
    lagged = {name: params[name] for name in ('actor', 'q')}
    adam = optax.adam(self.rate)
    opt = {part: adam.init(x) for part, x in _parts(params).items()}
    return State(params, lagged, opt, jnp.int32(0))

  def scaled(self, params: Any, obs: Array) -> Array:
    """States as the networks see them, [..., S]; see `normalised`."""
    if not self.normalised:
      return obs
    seen = params['states']
    mean, sd = (jnp.broadcast_to(seen[x], obs.shape) for x in ('mean', 'sd'))
    return (obs - mean) / sd

  def prepared(self, params: Any, data: DataSet) -> DataSet:
    """The data with `scaled` states, which `tables` and `update` take."""
    return data.replace(
      obs=self.scaled(params, data.obs),
      next_obs=self.scaled(params, data.next_obs),
    )

  def tables(self, data: DataSet) -> Any:
    """Arrays that the constraint tabulates once, of `prepared` data."""
    if isinstance(self.constraint, Nearest):
      return nearest_states(data.obs, min(NEAREST, data.size))
    return ()

  def mean(self, params: Any, obs: Array, b: Array | None = None) -> Array:
    """The actor's action, or the mean of its distribution."""
    return self._mean(params, self.scaled(params, obs), b)

  def _mean(self, params: Any, scaled: Array, b: Array | None = None) -> Array:
    if self.balance is not None:
      b = self._chosen_b(params, scaled) if b is None else b
      code = encoding(b, self.balance.size)
      scaled = jnp.concatenate([scaled, code], axis=-1)
    return jnp.tanh(networks.apply(params['actor'], scaled))

  def chosen_b(self, params: Any, obs: Array) -> Array:
    """The coefficient that the balance model chooses, its mean."""
    return self._chosen_b(params, self.scaled(params, obs))

  def _chosen_b(self, params: Any, scaled: Array) -> Array:
    assert self.balance is not None
    u = networks.apply(params['balance'], scaled)[..., 0]
    return self.balance.scaled(jnp.tanh(u))

  def update(
    self,
    state: State,
    data: DataSet,
    tables: Any,
    key: Array,
    filled: Array | int | None = None,
  ) -> tuple[State, Metrics]:
    """One step on a batch of the first `filled` rows; None: of all.

    data: as `prepared`.
    """
    row_key, target_key, actor_key = jax.random.split(key, 3)
    most = data.size if filled is None else filled
    row_B = jax.random.randint(row_key, (self.batch,), 0, most)
    batch = Batch(
      obs=data.obs[row_B],
      action=data.action[row_B],
      reward=data.reward[row_B],
      next_obs=data.next_obs[row_B],
      done=data.done[row_B],
      row=row_B,
    )

    def loss(params: Any) -> tuple[Array, Metrics]:
      critic, metrics = self._critic(params, state.lagged, batch, target_key)
      ctx = Context(params, batch, batch.action, actor_key, data, tables)
      if isinstance(self.constraint, Weighted):
        actor, more = self._weighted(ctx, state.lagged)
      else:
        actor, more = self._deterministic(ctx)
      return critic + actor, metrics | more

    grads, metrics = jax.grad(loss, has_aux=True)(state.params)
    moved, adam = {}, optax.adam(self.rate)
    gradient, old = _parts(grads), _parts(state.params)
    for part, opt in state.opt.items():
      moves, opt = adam.update(gradient[part], opt)
      moved[part] = optax.apply_updates(old[part], moves), opt
    second = jnp.bool_(True)
    if not isinstance(self.constraint, Weighted):
      second = state.step % 2 == 0
      moved['actor'] = jax.tree.map(
        lambda new, old: jnp.where(second, new, old),
        moved['actor'],
        (old['actor'], state.opt['actor']),
      )
    params: Any = state.params | moved['others'][0] | moved['actor'][0]
    opt = {part: x for part, (_, x) in moved.items()}
    lag = self.lag * second
    lagged = jax.tree.map(
      lambda old, new: old + lag * (new - old),
      state.lagged,
      {name: params[name] for name in state.lagged},
    )
    return State(params, lagged, opt, state.step + 1), metrics

  def _critic(
    self, params: Any, lagged: Any, batch: Batch, key: Array
  ) -> tuple[Array, Metrics]:
    """The loss of Q and V."""
    more = self.gamma * (1 - batch.done)
    if isinstance(self.critic, Expectile):
      after = jax.lax.stop_gradient(_value(params['v'], batch.next_obs))
      old = _least(lagged['q'], batch.obs, batch.action)
      gap = jax.lax.stop_gradient(old) - _value(params['v'], batch.obs)
      value = expectile_loss(gap, self.critic.tau).mean()
      y = batch.reward + more * after
    else:
      noise = self.critic.noise * jax.random.normal(key, batch.action.shape)
      noise = jnp.clip(noise, -self.critic.noise_clip, self.critic.noise_clip)
      action = jnp.clip(self._mean(lagged, batch.next_obs) + noise, -1, 1)
      y = batch.reward + more * _least(lagged['q'], batch.next_obs, action)
      # A2PR's V also takes the smaller target of the current critics.
      value = jnp.float32(0.0)
      if isinstance(self.constraint, Advantaged):
        now = _least(params['q'], batch.next_obs, action)
        least = jnp.minimum(y, batch.reward + more * now)
        fixed = jax.lax.stop_gradient(least)
        value = ((_value(params['v'], batch.obs) - fixed) ** 2).mean()
    y = jax.lax.stop_gradient(y)
    errors = [_q(q, batch.obs, batch.action) - y for q in params['q']]
    loss = sum((error**2).mean() for error in errors) + value
    return jnp.asarray(loss), {'q': y.mean()}

  def _deterministic(self, ctx: Context) -> tuple[Array, Metrics]:
    """The loss of the actor of TD3 with a constraint."""
    batch = ctx.batch
    fixed = jax.lax.stop_gradient(ctx.params)
    ctx = ctx._replace(proposed=self._mean(ctx.params, batch.obs))
    q = _q(fixed['q'][0], batch.obs, ctx.proposed)
    factor = self.alpha / jax.lax.stop_gradient(jnp.abs(q).mean() + 1e-8)
    held, metrics = self._held(ctx, fixed)
    return -factor * q.mean() + held, metrics

  def _held(self, ctx: Context, fixed: Any) -> tuple[Array, Metrics]:
    """The loss of the constraint."""
    batch, piece = ctx.batch, self.constraint
    if isinstance(piece, Free):
      return jnp.float32(0.0), {}
    if isinstance(piece, ToData):
      return ((ctx.proposed - batch.action) ** 2).mean(), {}
    if isinstance(piece, Nearest):
      row_NM, far_N = ctx.tables
      target, distance_B = jax.vmap(
        lambda s, a, rows: nearest_action(s, a, rows, ctx.data, piece.beta)
      )(batch.obs, jax.lax.stop_gradient(ctx.proposed), row_NM[batch.row])
      certain = distance_B <= piece.beta * far_N[batch.row]
      certain |= row_NM.shape[1] == ctx.data.size
      loss = ((ctx.proposed - jax.lax.stop_gradient(target)) ** 2).mean()
      return loss, {'certain': certain.mean()}
    assert isinstance(piece, Advantaged)
    made, _, _ = _made(fixed, batch.obs, ctx.proposed, ctx.key)
    q_made = _q(fixed['q'][0], batch.obs, made)
    q_data = _q(fixed['q'][0], batch.obs, batch.action)
    value = _value(fixed['v'], batch.obs)
    target, gate_B = advantaged_target(
      made, batch.action, q_made, q_data, value
    )
    held = gate_B[:, None] * (ctx.proposed - target) ** 2
    rebuilt, mean, sd = _made(ctx.params, batch.obs, batch.action, ctx.key)
    better_B1 = (q_data > value)[:, None]
    weight = piece.generator_weight
    generator = weight * jnp.where(
      better_B1, (rebuilt - batch.action) ** 2, 0.0
    )
    loss = piece.mask * held.mean() + generator.mean() + 0.5 * kl(mean, sd)
    return loss, {'gate': gate_B.mean()}

  def _weighted(self, ctx: Context, lagged: Any) -> tuple[Array, Metrics]:
    """The loss of a Gaussian actor, and of the balance model."""
    assert isinstance(self.constraint, Weighted)
    params, batch = ctx.params, ctx.batch
    fixed = jax.lax.stop_gradient(params)
    q = _least(lagged['q'], batch.obs, batch.action)
    gain = q - _value(fixed['v'], batch.obs)
    b, extra = jnp.full(q.shape, self.constraint.b), jnp.float32(0.0)
    metrics: Metrics = {}
    if self.balance is not None:
      extra, metrics, drawn = self._balanced(ctx, fixed, lagged)
      if self.balance.drawn == 'uniform':
        drawn = jax.random.uniform(ctx.key, q.shape, minval=-1.0)
      b = jax.lax.stop_gradient(self.balance.scaled(drawn))
    weight = jnp.minimum(jnp.exp(b * gain), WEIGHT_LIMIT)
    sd = jnp.exp(params['log_sd'])[None]
    mean = self._mean(params, batch.obs, b)
    logp = -0.5 * ((batch.action - mean) / sd) ** 2 - jnp.log(sd)
    loss = -(jax.lax.stop_gradient(weight) * logp.sum(axis=1)).mean()
    return loss + extra, metrics

  def _balanced(
    self, ctx: Context, fixed: Any, lagged: Any
  ) -> tuple[Array, Metrics, Array]:
    """(L, metrics, drawn u) of the balance model; a is drawn by the actor.

    L = mean [temperature log p(u | s) - min Qbar(s, a)]
    """
    assert self.balance is not None
    params, obs = ctx.params, ctx.batch.obs
    out = networks.apply(params['balance'], obs)
    mean, log_sd = out[:, 0], jnp.clip(out[:, 1], -5, 2)
    key_u, key_a = jax.random.split(ctx.key)
    raw = mean + jnp.exp(log_sd) * jax.random.normal(key_u, mean.shape)
    u = jnp.tanh(raw)
    normal = -0.5 * ((raw - mean) / jnp.exp(log_sd)) ** 2 - log_sd
    logp = normal - 0.5 * jnp.log(2 * jnp.pi) - jnp.log(1 - u**2 + 1e-6)
    action = self._mean(fixed, obs, self.balance.scaled(u))
    sd = jnp.exp(fixed['log_sd'])[None]
    noise = sd * jax.random.normal(key_a, action.shape)
    q = _least(lagged['q'], obs, jnp.clip(action + noise, -1, 1))
    temperature = jnp.exp(fixed['log_temperature'])
    gap = jax.lax.stop_gradient(-logp.mean() - self.balance.entropy)
    loss = (temperature * logp - q).mean()
    loss += jnp.exp(params['log_temperature']) * gap
    return loss, {'b': self.balance.scaled(u).mean()}, u

  def fit(self, data: DataSet, key: Array, steps: int) -> tuple[State, Metrics]:
    """The state after so many updates, and metrics [steps]; to be jitted."""
    start = self.init(data, jax.random.fold_in(key, steps))
    data = self.prepared(start.params, data)
    tables = self.tables(data)

    def one(state: State, number: Array) -> tuple[State, Metrics]:
      return self.update(state, data, tables, jax.random.fold_in(key, number))

    return jax.lax.scan(one, start, jnp.arange(steps))


def _parts(params: Any) -> dict[str, Any]:
  """The actor, which moves less often, and all others that are trained."""
  fixed = 'actor', 'states'
  others = {name: x for name, x in params.items() if name not in fixed}
  return {'actor': {'actor': params['actor']}, 'others': others}


def _value(v: Any, obs: Array) -> Array:
  return networks.apply(v, obs)[..., 0]


def _q(q: Any, obs: Array, action: Array) -> Array:
  return networks.apply(q, jnp.concatenate([obs, action], axis=-1))[..., 0]


def _least(both: Any, obs: Array, action: Array) -> Array:
  return jnp.minimum(*(_q(q, obs, action) for q in both))


def kl(mean: Array, sd: Array) -> Array:
  """mean[-(1 + log sd^2 - mean^2 - sd^2) / 2], of a CVAE."""
  return (-0.5 * (1 + jnp.log(sd**2) - mean**2 - sd**2)).mean()


def _made(
  params: Any, obs: Array, action: Array, key: Array
) -> tuple[Array, Array, Array]:
  """(reconstructed action, mean, sd) of the generator."""
  both = networks.apply(
    params['encoder'], jnp.concatenate([obs, action], axis=-1)
  )
  mean, log_sd = jnp.split(both, 2, axis=-1)
  sd = jnp.exp(jnp.clip(log_sd, -4, 15))
  z = mean + sd * jax.random.normal(key, mean.shape)
  made = networks.apply(params['decoder'], jnp.concatenate([obs, z], axis=-1))
  return jnp.tanh(made), mean, sd


@declared
class Learned(Actor):
  """Acts as a learner has learnt, without noise."""

  learner: Offline
  params: Any

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """The mean of the actor."""
    del key
    return self.learner.mean(self.params, obs), memory
