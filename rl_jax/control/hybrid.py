"""PPO with two actors, of a node and of a vector, and an ensemble (RELIEF)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rl_jax.checks import ranged
from rl_jax.control import networks
from rl_jax.control.base import Actor, declared
from rl_jax.control.graphs import place
from rl_jax.control.unroll import Steps
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.types import Array, Metrics

NEVER = -1e9  # a logit: its probability is 0 in float32


def ensemble(prob_MN: Array) -> Array:
  """The normalised element-wise maximum of the members, [..., N]."""
  most_N = prob_MN.max(axis=-2)
  return most_N / most_N.sum(axis=-1, keepdims=True)


def kl_nodes(p_N: Array, q_N: Array) -> Array:
  """KL(p || q) = sum p ln(p / q), [...]."""
  tiny = 1e-10
  return (p_N * (jnp.log(p_N + tiny) - jnp.log(q_N + tiny))).sum(axis=-1)


def kl_vectors(mean_F: Array, other_F: Array, log_sd: Array) -> Array:
  """KL of two normal distributions of one deviation, [...]."""
  return (((mean_F - other_F) / jnp.exp(log_sd)) ** 2 / 2).sum(axis=-1)


def advantages(
  reward_BT: Array,
  value_BT: Array,
  after_BT: Array,
  ends_BT: Array,
  decay: tuple[Array | float, Array | float],
) -> Array:
  """Generalized advantages, [B, T]; decay is (gamma, lambda).

  after_BT: values of the successors, which count 0 where an episode ends.
  """
  gamma, lam = decay
  on_BT = 1.0 - ends_BT
  delta_BT = reward_BT + gamma * on_BT * after_BT - value_BT
  return reverse_linear_scan(delta_BT, gamma * lam * on_BT)


def running(reward_BT: Array) -> Array:
  """(r_t - mean) / (sd + 1e-8) of all rewards of the batch up to step t."""
  count_T = len(reward_BT) * jnp.arange(1, reward_BT.shape[1] + 1)
  mean_T = jnp.cumsum(reward_BT.sum(axis=0)) / count_T
  square_T = jnp.cumsum((reward_BT**2).sum(axis=0)) / count_T
  sd_T = jnp.sqrt(jnp.maximum(square_T - mean_T**2, 0.0))
  return (reward_BT - mean_T[None]) / (sd_T[None] + 1e-8)


class Batch(NamedTuple):
  """Steps of a member, [B, ...], with what it thought of them."""

  state_BND: Array
  node_B: Array
  vector_BF: Array
  advantage_B: Array
  return_B: Array
  logp_node_B: Array
  logp_vector_B: Array


@declared
class Hybrid:
  """The learner of one member of an ensemble.

    L = PPO-clip(node) - entropy H(node) + PPO-clip(vector)
        + .5 (V - G)^2 + pull_node KL(pi_ens || pi_k)
        + pull_vector KL(N_k || N_ens) at the likeliest node of pi_ens

  The other members are fixed. Node: softmax over logits of each node; vector:
  N(tanh(f(h_i)), sd^2 I). The last number of an embedding is 1 for a node and 0
  for padding, which is never chosen. Rewards are centred and scaled by running
  statistics of their batch. Updates end when the estimated KL of nodes or
  vectors passes its limit.
  Source: RELIEF, graph_level/{agent,base}.py.
  """

  nodes: int = ranged(low=1, static=True)
  size: int = ranged(low=2, static=True)  # of an embedding
  vector: int = ranged(low=1, static=True)  # of a prompt
  width: int = ranged(32, 1, static=True)
  updates: int = ranged(10, 1, static=True)
  clip: float = ranged(0.2, 0.0)
  gamma: float = ranged(0.99, 0.0, 1.0)
  lam: float = ranged(0.95, 0.0, 1.0)
  pull_node: float = ranged(1.0, 0.0)
  pull_vector: float = ranged(0.1, 0.0)
  limit_node: float = ranged(0.001, 0.0)
  limit_vector: float = ranged(0.1, 0.0)
  rate: float = ranged(5e-4, 0.0, open_low=True)

  def init(self, key: Array) -> Any:
    """Both actors and a critic of all embeddings."""
    first, second, third = jax.random.split(key, 3)
    W = self.width
    node = networks.mlp(first, (self.size, W, 1))
    vector = networks.mlp(second, (self.size, W, self.vector))
    small = jax.tree.map(lambda x: 0.01 * x, (node[-1], vector[-1]))
    return {
      'node': [*node[:-1], small[0]],
      'vector': [*vector[:-1], small[1]],
      'critic': networks.mlp(third, (self.nodes * self.size, W, 1)),
    }

  @property
  def optimizer(self) -> optax.GradientTransformation:
    """Adam with eps 1e-5, gradients clipped to .5."""
    return optax.chain(
      optax.clip_by_global_norm(0.5), optax.adam(self.rate, eps=1e-5)
    )

  def states(self, obs: Array) -> Array:
    """Embeddings [..., N, D] of observations [..., N D]."""
    return obs.reshape(*obs.shape[:-1], self.nodes, self.size)

  def logits(self, params: Any, state_ND: Array) -> Array:
    """Scores of the nodes, [..., N]; those of padding have no chance."""
    score_N = networks.apply(params['node'], state_ND)[..., 0]
    return jnp.where(state_ND[..., -1] > 0, score_N, NEVER)

  def mean(self, params: Any, state_ND: Array, node: Array) -> Array:
    """The mean of the vector of a node, [..., F], within [-1, 1]."""
    own_D = jnp.take_along_axis(state_ND, node[..., None, None], axis=-2)
    return jnp.tanh(networks.apply(params['vector'], own_D[..., 0, :]))

  def _logp(
    self, params: Any, batch: Batch, log_sd: Array
  ) -> tuple[Array, Array]:
    """Log-probabilities of the nodes and of the vectors, [B]."""
    logp_BN = jax.nn.log_softmax(self.logits(params, batch.state_BND))
    node_B = jnp.take_along_axis(logp_BN, batch.node_B[:, None], 1)[:, 0]
    gap_BF = batch.vector_BF - self.mean(params, batch.state_BND, batch.node_B)
    vector_BF = -0.5 * (gap_BF / jnp.exp(log_sd)) ** 2 - log_sd
    return node_B, vector_BF.sum(axis=1)

  def batch(self, params: Any, steps: Steps, log_sd: Array) -> Batch:
    """The steps of episodes [B, T], with their advantages."""
    state = self.states(steps.obs)
    assert steps.next_obs is not None
    value_BT, after_BT = (
      networks.apply(params['critic'], x)[..., 0]
      for x in (steps.obs, steps.next_obs)
    )
    scaled = running(steps.reward)
    decay = self.gamma, self.lam
    gain_BT = advantages(scaled, value_BT, after_BT, steps.done, decay)
    node_BT = jnp.floor((steps.action[..., 0] + 1) / 2 * self.nodes)

    def flat(x: Array) -> Array:
      return x.reshape(-1, *x.shape[2:])

    batch = Batch(
      state_BND=flat(state),
      node_B=flat(jnp.clip(node_BT.astype(jnp.int32), 0, self.nodes - 1)),
      vector_BF=flat(steps.action[..., 1:]),
      advantage_B=flat((gain_BT - gain_BT.mean()) / (gain_BT.std() + 1e-8)),
      return_B=flat(gain_BT + value_BT),
      logp_node_B=jnp.zeros(gain_BT.size),
      logp_vector_B=jnp.zeros(gain_BT.size),
    )
    node_B, vector_B = self._logp(params, batch, log_sd)
    return batch._replace(logp_node_B=node_B, logp_vector_B=vector_B)

  def penalties(
    self, params: Any, others: Any, state_BND: Array, log_sd: Array
  ) -> tuple[Array, Array]:
    """KL(pi_ens || pi_k) and KL(N_k || N_ens), [B]; others: [M - 1, ...]."""
    own_BN = jax.nn.softmax(self.logits(params, state_BND))
    other_MBN = jax.vmap(lambda x: jax.nn.softmax(self.logits(x, state_BND)))(
      others
    )
    every_MBN = jnp.concatenate([own_BN[None], other_MBN])
    ens_BN = jax.lax.stop_gradient(ensemble(jnp.moveaxis(every_MBN, 0, -2)))
    node_B = jnp.argmax(ens_BN, axis=-1)
    own_BF = self.mean(params, state_BND, node_B)
    other_MBF = jax.vmap(lambda x: self.mean(x, state_BND, node_B))(others)
    mean_BF = jnp.concatenate([own_BF[None], other_MBF]).mean(axis=0)
    mean_BF = jax.lax.stop_gradient(mean_BF)
    return kl_nodes(ens_BN, own_BN), kl_vectors(own_BF, mean_BF, log_sd)

  def loss(
    self, params: Any, others: Any, batch: Batch, log_sd: Array, entropy: Array
  ) -> tuple[Array, Metrics]:
    """The loss of a member, and estimates of KL to the policy that acted."""
    node_B, vector_B = self._logp(params, batch, log_sd)
    total, metrics = jnp.float32(0.0), {}
    for name, gap_B in (
      ('node', node_B - batch.logp_node_B),
      ('vector', vector_B - batch.logp_vector_B),
    ):
      ratio_B = jnp.exp(gap_B)
      kept_B = jnp.clip(ratio_B, 1 - self.clip, 1 + self.clip)
      gain_B = jnp.minimum(
        ratio_B * batch.advantage_B, kept_B * batch.advantage_B
      )
      total -= gain_B.mean()
      metrics[name] = (ratio_B - 1 - gap_B).mean()
    logp_BN = jax.nn.log_softmax(self.logits(params, batch.state_BND))
    total += entropy * (jnp.exp(logp_BN) * logp_BN).sum(axis=1).mean()
    flat_B = batch.state_BND.reshape(len(batch.node_B), -1)
    value_B = networks.apply(params['critic'], flat_B)[:, 0]
    total += 0.5 * ((value_B - batch.return_B) ** 2).mean()
    kl_d, kl_c = self.penalties(params, others, batch.state_BND, log_sd)
    total += self.pull_node * kl_d.mean() + self.pull_vector * kl_c.mean()
    return total, metrics

  def update(
    self,
    state: tuple[Any, Any],
    others: Any,
    batch: Batch,
    log_sd: Array,
    entropy: Array,
  ) -> tuple[Any, Any]:
    """(parameters, optimizer's state) after at most `updates` steps."""

    def one(carry: Any, _: None) -> tuple[Any, None]:
      (params, opt), on = carry
      grads, metrics = jax.grad(self.loss, has_aux=True)(
        params, others, batch, log_sd, entropy
      )
      moves, new_opt = self.optimizer.update(grads, opt)
      new = optax.apply_updates(params, moves), new_opt
      kept = jax.tree.map(lambda a, b: jnp.where(on, a, b), new, (params, opt))
      near = metrics['node'] <= self.limit_node
      near &= metrics['vector'] <= self.limit_vector
      return (kept, on & near), None

    start = state, jnp.bool_(True)
    return jax.lax.scan(one, start, None, length=self.updates)[0][0]


@declared
class Prompter(Actor):
  """Acts as one member, or as the ensemble of several with mean vectors.

  members: [M, ...]. One member draws its vectors; the ensemble draws only the
  node, as published.
  """

  learner: Hybrid
  members: Any
  log_sd: Array

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """A node, and what is added to it."""
    node_key, vector_key = jax.random.split(key)
    state_ND = self.learner.states(obs)
    prob_MN = jax.nn.softmax(
      jax.vmap(lambda x: self.learner.logits(x, state_ND))(self.members)
    )
    logit_N = jnp.log(ensemble(prob_MN) + 1e-10)
    logit_N = jnp.where(state_ND[:, -1] > 0, logit_N, NEVER)
    node = jax.random.categorical(node_key, logit_N)
    mean_MF = jax.vmap(lambda x: self.learner.mean(x, state_ND, node))(
      self.members
    )
    vector_F = mean_MF.mean(axis=0)
    if len(prob_MN) == 1:
      noise_F = jax.random.normal(vector_key, vector_F.shape)
      vector_F = vector_F + jnp.exp(self.log_sd) * noise_F
    x = place(node, self.learner.nodes)
    return jnp.concatenate([x[None], vector_F]), memory
