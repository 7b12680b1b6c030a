"""Graphs whose node features are prompted, for a network that is frozen."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.control.base import Box, Space, World, declared
from rl_jax.types import Array


class Graphs(NamedTuple):
  """Undirected graphs of at most N nodes with labels 0 or 1, [G, ...].

  nodes_G: the nodes of every graph, which come before its padding; None: all N.
  """

  adjacency_GNN: Array
  features_GNF: Array
  label_G: Array
  nodes_G: Array | None = None

  def real(self) -> Array:
    """1 for nodes, 0 for padding, [G, N]; of one graph [N]."""
    shape = self.adjacency_GNN.shape[:-1]
    if self.nodes_G is None:
      return jnp.ones(shape)
    place = jnp.broadcast_to(jnp.arange(shape[-1]), shape)
    return (place < self.nodes_G[..., None]).astype(jnp.float32)


def check_graphs(graphs: Graphs) -> None:
  """Raises ValueError that names a field of another length, or an edge or
  number that no graph has; to be called before a program is compiled.
  """
  shape = np.shape(graphs.adjacency_GNN)
  if len(shape) != 3 or shape[1] != shape[2] or not all(shape):
    raise ValueError(
      f'Graphs.adjacency_GNN has shape {shape}: expected G, N, N'
    )
  G, N, _ = shape
  given = (
    ('features_GNF', graphs.features_GNF, (G, N)),
    ('label_G', graphs.label_G, (G,)),
    ('nodes_G', graphs.nodes_G, (G,)),
  )
  for name, x, expected in given:
    if x is not None and np.shape(x)[: len(expected)] != expected:
      raise ValueError(
        f'Graphs.{name} has shape {np.shape(x)}, but there are {G} graphs of '
        f'{N} nodes'
      )
    if x is not None and not np.isfinite(x).all():
      raise ValueError(f'Graphs.{name} has a number that is not finite')
  edges = np.asarray(graphs.adjacency_GNN)
  if not ((edges == 0) | (edges == 1)).all():
    raise ValueError('Graphs.adjacency_GNN has a number that is not 0 or 1')
  if (edges != edges.transpose(0, 2, 1)).any():
    raise ValueError('Graphs.adjacency_GNN has an edge of one direction')
  if graphs.nodes_G is not None:
    count = np.asarray(graphs.nodes_G)
    if ((count < 1) | (count > N)).any():
      raise ValueError(f'Graphs.nodes_G = {count}: expected 1 to {N}')
  padding = np.asarray(graphs.real()) == 0
  if edges[padding].any():
    raise ValueError('Graphs.adjacency_GNN has an edge to padding')


def has_triangle(adjacency_NN: Array) -> Array:
  """1 if three nodes are joined to one another, else 0."""
  cubed_NN = adjacency_NN @ adjacency_NN @ adjacency_NN
  return (jnp.trace(cubed_NN) > 0).astype(jnp.float32)


def drawn(key: Array, number: int, nodes: int, size: int) -> Graphs:
  """Random graphs, of which about half have a triangle, which is their label.

  The features are 1, so only the edges tell. The probability of an edge is such
  that the expected number of triangles is ln 2.
  """
  triples = nodes * (nodes - 1) * (nodes - 2) / 6
  probability = (jnp.log(2.0) / triples) ** (1 / 3)
  draw_GNN = jax.random.uniform(key, (number, nodes, nodes))
  upper_GNN = jnp.triu(draw_GNN < probability, k=1).astype(jnp.float32)
  adjacency_GNN = upper_GNN + jnp.swapaxes(upper_GNN, 1, 2)
  return Graphs(
    adjacency_GNN,
    jnp.ones((number, nodes, size)),
    jax.vmap(has_triangle)(adjacency_GNN),
  )


class Frozen(NamedTuple):
  """Weights of two layers of message passing, which are never trained."""

  first_FD: Array
  bias_D: Array
  second_DD: Array

  @classmethod
  def drawn(cls, key: Array, features: int, width: int) -> 'Frozen':
    """Normal weights, by the root of their inputs; uniform biases."""
    first, second, third = jax.random.split(key, 3)
    return cls(
      jax.random.normal(first, (features, width)) * features**-0.5,
      jax.random.uniform(third, (width,), minval=-1.0),
      jax.random.normal(second, (width, width)) * width**-0.5,
    )

  def embed(
    self, adjacency_NN: Array, features_NF: Array, real_N: Array | None = None
  ) -> Array:
    """(A + I) max(0, (A + I) x W1 + b) W2, of nodes, [N, D]; 0 at padding."""
    own_N = jnp.ones(len(adjacency_NN)) if real_N is None else real_N
    sums_NN = adjacency_NN + jnp.diag(own_N)
    hidden_ND = sums_NN @ features_NF @ self.first_FD + self.bias_D[None]
    return sums_NN @ jnp.maximum(hidden_ND, 0.0) @ self.second_DD


class Head(NamedTuple):
  """A linear classifier of the mean embedding of a graph."""

  weight_D: Array
  bias: Array

  @classmethod
  def zeros(cls, width: int) -> 'Head':
    """Says 1/2 of every graph."""
    return cls(jnp.zeros(width), jnp.float32(0.0))

  def logit(self, node_ND: Array, real_N: Array) -> Array:
    """The logit of label 1, [...], from nodes [..., N, D], 0 at padding."""
    count = real_N.sum(axis=-1)[..., None]
    return (node_ND.sum(axis=-2) / count) @ self.weight_D + self.bias

  def loss(self, node_ND: Array, real_N: Array, label: Array) -> Array:
    """Cross-entropy, [...], in nats."""
    logit = self.logit(node_ND, real_N)
    return jax.nn.softplus(logit) - label * logit


class Prompting(NamedTuple):
  """A graph, its prompt so far, and the loss of the head on it."""

  graph: Array  # its number
  prompt_NF: Array
  loss: Array
  time: Array


@declared
class GraphPrompt(World):
  """Vectors are added to the features of nodes, one node a step.

    p_i <- p_i + reach v          r_t = L_{t-1} - L_t, L of the head

  An action is (x, v_1 .. v_F): the node i is that of the x in [-1, 1] among N
  equal parts, see `node` and `place`. A task is a graph, and an episode has one
  step for every node. The embeddings of all nodes are observed, each followed
  by 1, or by 0 at padding, [N (D + 1)]; what is added to padding changes
  nothing. v is not bounded. Source: RELIEF, graph_level/{agent,reward}.py.
  """

  graphs: Graphs
  frozen: Frozen
  head: Head
  reach: float = ranged(1.0, 0.0)

  @property
  def nodes(self) -> int:
    """The nodes of a graph, with its padding."""
    return self.graphs.adjacency_GNN.shape[-1]

  @property
  def observations(self) -> Space:
    """The embeddings of the nodes."""
    return Box(self.nodes * (self.frozen.second_DD.shape[-1] + 1))

  @property
  def actions(self) -> Space:
    """The node, and the vector."""
    return Box(1 + self.graphs.features_GNF.shape[-1])

  def check(self) -> None:
    """Raises ValueError that names a field of the graphs that does not fit."""
    check_graphs(self.graphs)

  def node(self, x: Array) -> Array:
    """The number of a node, from its place in [-1, 1]."""
    number = jnp.floor((x + 1) / 2 * self.nodes).astype(jnp.int32)
    return jnp.clip(number, 0, self.nodes - 1)

  def embeddings(self, state: Prompting) -> Array:
    """The embeddings of the prompted nodes, [N, D]."""
    features_NF = self.graphs.features_GNF[state.graph] + state.prompt_NF
    return self.frozen.embed(
      self.graphs.adjacency_GNN[state.graph], features_NF, self._real(state)
    )

  def _real(self, state: Prompting) -> Array:
    return self.graphs.real()[state.graph]

  def _with(self, state: Prompting) -> Prompting:
    """The state with the loss of its prompt."""
    label = self.graphs.label_G[state.graph]
    node_ND, real_N = self.embeddings(state), self._real(state)
    return state._replace(loss=self.head.loss(node_ND, real_N, label))

  def reset(self, key: Array) -> Prompting:
    """A graph without a prompt."""
    count = self.graphs.label_G.shape[0]
    graph = jax.random.randint(key, (), 0, count)
    return self.begin(
      Prompting(
        graph,
        jnp.zeros(self.graphs.features_GNF.shape[1:]),
        jnp.float32(0.0),
        jnp.int32(0),
      ),
      key,
    )

  def begin(self, state: Prompting, key: Array) -> Prompting:
    """The same graph without a prompt."""
    del key
    return self._with(
      state._replace(
        prompt_NF=jnp.zeros_like(state.prompt_NF), time=jnp.int32(0)
      )
    )

  def observe(self, state: Prompting) -> Array:
    """The embeddings and what is real, [N (D + 1)]."""
    real_N1 = self._real(state)[:, None]
    return jnp.concatenate([self.embeddings(state), real_N1], 1).reshape(-1)

  def step(
    self, state: Prompting, action: Array, key: Array
  ) -> tuple[Prompting, Array, Array]:
    """The reward is the drop of the loss; rewards sum to L_0 - L_N."""
    del key
    moved_NF = state.prompt_NF.at[self.node(action[0])].add(
      self.reach * action[1:]
    )
    after = self._with(state._replace(prompt_NF=moved_NF, time=state.time + 1))
    done = after.time >= self._real(state).sum()
    return after, state.loss - after.loss, done


def place(node: Array, nodes: int) -> Array:
  """The middle of a node's part of [-1, 1], the inverse of GraphPrompt.node."""
  return (2 * node + 1) / nodes - 1
