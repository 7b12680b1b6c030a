"""RELIEF (C10): prompts of a few nodes for a frozen network of graphs.

Molecules and pretrained networks are not here: graphs are random, their label
is whether they have a triangle, and the network has fixed random weights.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import graphs
from rl_jax.control.base import Actor, declared
from rl_jax.control.graphs import Frozen, GraphPrompt, Graphs, Head
from rl_jax.control.hybrid import Hybrid, Prompter
from rl_jax.control.unroll import unroll
from rl_jax.types import Array

NODES, FEATURES, WIDTH = 12, 8, 16
TRAIN, TEST, MEMBERS, BATCH = 50, 400, 3, 8  # graphs
HEAD_UPDATES, HEAD_RATE = 10, 1e-2  # an epoch
ACCURACY, SHARE = 'accuracy on 400 graphs', 'share of nodes that are prompted'
RELIEF, PLAIN, EVERY = 'RELIEF', 'frozen network', 'one vector on all nodes'
RANDOM = 'random prompts'
LEARNER = Hybrid(
  nodes=NODES, size=WIDTH + 1, vector=FEATURES, rate=2e-3, limit_node=0.01
)


def real(label_G: Array) -> Array:
  """Ones [G, N]: the graphs of this row have no padding."""
  return jnp.ones((len(label_G), NODES))


def part(data: Graphs, member: int) -> Graphs:
  """The graphs of a member: its third, and a fifth of the other thirds."""
  third = TRAIN // MEMBERS
  rows = [*range(member * third, (member + 1) * third)]
  for other in range(MEMBERS):
    if other != member:
      rows += range((other + 1) * third - third // 5, (other + 1) * third)
  return jax.tree.map(lambda x: x[jnp.asarray(rows)], data)


def prompted(
  data: Graphs, frozen: Frozen, head: Head, actor: Actor, key: Array
):
  """(embeddings [G, N, D] after an episode, share of nodes with a prompt)."""

  def one(graph: Graphs, key: Array) -> tuple[Array, Array]:
    single = jax.tree.map(lambda x: x[None], graph)
    world = GraphPrompt(graphs=single, frozen=frozen, head=head)
    steps = unroll(world, actor, key, 1, NODES)
    assert steps.next_obs is not None
    chosen_T = world.node(steps.action[:, 0])
    share = jax.nn.one_hot(chosen_T, NODES).max(axis=0).mean()
    return steps.next_obs[-1].reshape(NODES, WIDTH + 1)[:, :WIDTH], share

  keys = jax.random.split(key, data.label_G.shape[0])
  node_GND, share_G = jax.vmap(one)(data, keys)
  return node_GND, share_G.mean()


def fitted(head: Head, opt: Any, node_GND: Array, label_G: Array):
  """The head, and its optimizer's state, after HEAD_UPDATES."""

  def one(state: Any, _: None) -> tuple[Any, None]:
    head, opt = state
    grads = jax.grad(lambda x: x.loss(node_GND, real(label_G), label_G).mean())(
      head
    )
    moves, opt = optax.adam(HEAD_RATE).update(grads, opt)
    return (optax.apply_updates(head, moves), opt), None

  return jax.lax.scan(one, (head, opt), None, length=HEAD_UPDATES)[0]


def accuracy(head: Head, node_GND: Array, label_G: Array) -> Array:
  """The share of graphs whose label is more likely than the other."""
  return ((head.logit(node_GND, real(label_G)) > 0) == (label_G > 0)).mean()


def probed(
  data: Graphs, frozen: Frozen, actor: Actor | None, key: Array, epochs: int
) -> Head:
  """A head of prompts that are not learned; without an actor there are none."""
  start = Head.zeros(WIDTH)

  def epoch(state: Any, number: Array) -> tuple[Any, None]:
    head, opt = state
    node_GND = jax.vmap(frozen.embed)(data.adjacency_GNN, data.features_GNF)
    if actor is not None:
      now = jax.random.fold_in(key, number)
      node_GND, _ = prompted(data, frozen, head, actor, now)
    return fitted(head, opt, node_GND, data.label_G), None

  opt = optax.adam(HEAD_RATE).init(start)
  return jax.lax.scan(epoch, (start, opt), jnp.arange(epochs))[0][0]


def with_vector(
  data: Graphs, frozen: Frozen, epochs: int
) -> tuple[Head, Array]:
  """(head, vector of all nodes), by gradients of both (GPF)."""

  def loss(both: tuple[Head, Array]) -> Array:
    head, vector_F = both
    features_GNF = data.features_GNF + vector_F[None, None]
    node_GND = jax.vmap(frozen.embed)(data.adjacency_GNN, features_GNF)
    return head.loss(node_GND, data.real(), data.label_G).mean()

  def one(state: Any, _: None) -> tuple[Any, None]:
    both, opt = state
    moves, opt = optax.adam(HEAD_RATE).update(jax.grad(loss)(both), opt)
    return (optax.apply_updates(both, moves), opt), None

  start = Head.zeros(WIDTH), jnp.zeros(FEATURES)
  opt = optax.adam(HEAD_RATE).init(start)
  steps = epochs * HEAD_UPDATES
  return jax.lax.scan(one, (start, opt), None, length=steps)[0][0]


def trained(
  data: Graphs, frozen: Frozen, key: Array, epochs: int
) -> tuple[Head, Prompter]:
  """The head and the ensemble of RELIEF after so many epochs."""
  keys = jax.random.split(key, MEMBERS)
  members = jax.vmap(LEARNER.init)(keys)
  opts = jax.vmap(LEARNER.optimizer.init)(members)
  head = Head.zeros(WIDTH)

  def epoch(state: Any, number: Array) -> tuple[Any, None]:
    members, opts, head, head_opt = state
    now = jax.random.fold_in(key, number)
    passed = number / epochs
    log_sd, entropy = -5 * passed, 0.01 * (1 - passed)
    for k in range(MEMBERS):
      others = jax.tree.map(lambda x, k=k: jnp.delete(x, k, axis=0), members)
      one, opt = jax.tree.map(lambda x, k=k: x[k], (members, opts))
      world = GraphPrompt(graphs=part(data, k), frozen=frozen, head=head)
      single = jax.tree.map(lambda x: x[None], one)
      actor = Prompter(learner=LEARNER, members=single, log_sd=log_sd)
      draw = jax.random.split(jax.random.fold_in(now, k), BATCH)
      steps = policies.play(world, actor, draw, NODES)
      batch = LEARNER.batch(one, steps, log_sd)
      new = LEARNER.update((one, opt), others, batch, log_sd, entropy)
      members, opts = jax.tree.map(
        lambda x, y, k=k: x.at[k].set(y), (members, opts), new
      )
    actor = Prompter(learner=LEARNER, members=members, log_sd=log_sd)
    node_GND, _ = prompted(
      data, frozen, head, actor, jax.random.fold_in(now, MEMBERS)
    )
    head, head_opt = fitted(head, head_opt, node_GND, data.label_G)
    return (members, opts, head, head_opt), None

  start = members, opts, head, optax.adam(HEAD_RATE).init(head)
  members, _, head, _ = jax.lax.scan(epoch, start, jnp.arange(epochs))[0]
  last = jnp.float32(-5.0)
  return head, Prompter(learner=LEARNER, members=members, log_sd=last)


@declared
class Scattered(Actor):
  """Random nodes and random vectors, as an untrained policy draws them."""

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """A uniform node, and N(0, I) / 2 for each number of its vector."""
    del obs
    first, second = jax.random.split(key)
    x = jax.random.uniform(first, (1,), minval=-1.0)
    vector_F = 0.5 * jax.random.normal(second, (FEATURES,))
    return jnp.concatenate([x, vector_F]), memory


def measure(key_S: Array, scale: float) -> Results:
  """All arms have as many updates of the head on the same 50 graphs."""
  epochs = max(1, round(60 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    keys = jax.random.split(key, 6)
    data = graphs.drawn(keys[0], TRAIN, NODES, FEATURES)
    test = graphs.drawn(keys[1], TEST, NODES, FEATURES)
    frozen = Frozen.drawn(keys[2], FEATURES, WIDTH)

    def embedded(vector_F: Array) -> Array:
      features_GNF = test.features_GNF + vector_F[None, None]
      return jax.vmap(frozen.embed)(test.adjacency_GNN, features_GNF)

    head = probed(data, frozen, None, keys[3], epochs)
    found = {PLAIN: accuracy(head, embedded(jnp.zeros(FEATURES)), test.label_G)}
    head, vector_F = with_vector(data, frozen, epochs)
    found[EVERY] = accuracy(head, embedded(vector_F), test.label_G)
    random = Scattered()
    head = probed(data, frozen, random, keys[3], epochs)
    nodes, share = prompted(test, frozen, head, random, keys[4])
    found[RANDOM] = accuracy(head, nodes, test.label_G)
    shares = {RANDOM: share, EVERY: jnp.float32(1.0)}
    head, actor = trained(data, frozen, keys[5], epochs)
    nodes, shares[RELIEF] = prompted(test, frozen, head, actor, keys[4])
    found[RELIEF] = accuracy(head, nodes, test.label_G)
    found['more frequent label'] = jnp.maximum(
      test.label_G.mean(), 1 - test.label_G.mean()
    )
    return {ACCURACY: found, SHARE: shares}

  return policies.over_seeds(one, key_S)


ROW = Row(
  'RELIEF (C10), triangles in random graphs of 12 nodes, 50 for training',
  (
    Claim(
      'RELIEF is more accurate than the frozen network without prompts',
      ACCURACY,
      PLAIN,
      RELIEF,
    ),
    Claim(
      'RELIEF is more accurate than one learned vector on all nodes (GPF)',
      ACCURACY,
      EVERY,
      RELIEF,
    ),
    Claim(
      'what it gains is learned: random prompts are less accurate',
      ACCURACY,
      RANDOM,
      RELIEF,
    ),
  ),
  measure,
)
