"""Graphs with prompts, and PPO with an actor of nodes and one of vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control import actors, graphs, hybrid
from rl_jax.control.graphs import Frozen, GraphPrompt, Head
from rl_jax.control.hybrid import Hybrid, Prompter
from rl_jax.control.unroll import histories, unroll

NODES, FEATURES, WIDTH = 5, 3, 8
LEARNER = Hybrid(
  nodes=NODES, size=WIDTH + 1, vector=FEATURES, width=8, rate=1e-2
)


def world_of(number=6, seed=0):
  keys = jax.random.split(jax.random.key(seed), 3)
  head = Head(jax.random.normal(keys[0], (WIDTH,)), jnp.float32(0.1))
  return GraphPrompt(
    graphs=graphs.drawn(keys[1], number, NODES, FEATURES),
    frozen=Frozen.drawn(keys[2], FEATURES, WIDTH),
    head=head,
  )


def members(number=3):
  return jax.vmap(LEARNER.init)(jax.random.split(jax.random.key(1), number))


def test_ensemble_by_hand():
  """E1: the maximum of three members, and the divergence of the first."""
  prob = jnp.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
  found = hybrid.ensemble(prob)
  np.testing.assert_allclose(found, [0.388889, 0.277778, 0.333333], rtol=1e-5)
  np.testing.assert_allclose(
    hybrid.kl_nodes(found, prob[0]), 0.263992, rtol=1e-5
  )


def test_divergence_of_vectors_by_hand():
  """E1: unit deviations, means .4 and .1."""
  found = hybrid.kl_vectors(jnp.array([0.4]), jnp.array([0.1]), jnp.float32(0))
  np.testing.assert_allclose(found, 0.045, rtol=1e-5)
  half = jnp.log(0.5)
  found = hybrid.kl_vectors(jnp.array([0.4]), jnp.array([0.1]), half)
  np.testing.assert_allclose(found, 0.18, rtol=1e-5)


def test_advantages_by_hand():
  """E1: gamma .5, lambda .5; an end, and a last step that was cut."""
  reward, value = jnp.array([[1.0, 2.0, 5.0]]), jnp.array([[3.0, 4.0, 1.0]])
  after, ends = jnp.array([[4.0, 9.0, 6.0]]), jnp.array([[False, True, False]])
  found = hybrid.advantages(reward, value, after, ends, (0.5, 0.5))
  np.testing.assert_allclose(
    found[0], [1 + 2 - 3 + 0.25 * -2, 2 - 4, 5 + 3 - 1], rtol=1e-6
  )


def test_running_statistics_by_hand():
  """E1: of both rows up to each step; one value is 0."""
  found = hybrid.running(jnp.array([[1.0, 5.0], [3.0, 3.0]]))
  np.testing.assert_allclose(
    found, [[-1, 2 / 2**0.5], [1, 0]], rtol=1e-5, atol=1e-6
  )
  assert hybrid.running(jnp.array([[7.0]]))[0, 0] == 0


def test_equal_members_have_no_penalty():
  """E1: the ensemble of three equal members is each of them."""
  same = jax.tree.map(
    lambda x: jnp.stack([x] * 2), LEARNER.init(jax.random.key(0))
  )
  one = jax.tree.map(lambda x: x[0], same)
  state = jax.random.normal(jax.random.key(1), (7, NODES, WIDTH + 1))
  state = state.at[..., -1].set(1.0)
  for penalty in LEARNER.penalties(one, same, state, jnp.float32(-1.0)):
    np.testing.assert_allclose(penalty, 0.0, atol=1e-6)
  other = jax.tree.map(lambda x: 300 * x, same)
  differs = LEARNER.penalties(one, other, state, jnp.float32(-1.0))
  assert differs[0].min() > 0 and differs[1].min() > 0


def test_rewards_are_drops_of_the_loss():
  """E1: they sum to L_0 - L_N, and losses .9, .7, .75 give .2 and -.05."""
  world = world_of()
  actor = Prompter(learner=LEARNER, members=members(), log_sd=jnp.float32(0.0))
  steps = histories(world, actor, jax.random.split(jax.random.key(2), 9), 1, 8)
  assert steps.done[:, NODES - 1].all()

  def loss(obs, label):
    node_ND = obs.reshape(NODES, WIDTH + 1)[:, :WIDTH]
    return world.head.loss(node_ND, jnp.ones(NODES), label)

  state = jax.vmap(lambda key: world.reset(jax.random.split(key, 3)[0]))(
    jax.random.split(jax.random.key(2), 9)
  )
  label = world.graphs.label_G[state.graph]
  first = jax.vmap(loss)(steps.obs[:, 0], label)
  last = jax.vmap(loss)(steps.next_obs[:, NODES - 1], label)
  np.testing.assert_allclose(
    steps.reward[:, :NODES].sum(axis=1), first - last, rtol=1e-3, atol=1e-5
  )
  # Without a prompt the network is the frozen one, in the next episode, too.
  plain = jax.vmap(world.frozen.embed)(
    world.graphs.adjacency_GNN, world.graphs.features_GNF
  )[state.graph]
  plain = jnp.pad(plain, ((0, 0), (0, 0), (0, 1)), constant_values=1.0)
  plain = plain.reshape(9, -1)
  np.testing.assert_allclose(steps.obs[:, 0], plain, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(steps.obs[:, NODES], plain, rtol=1e-5, atol=1e-6)
  drops = -jnp.diff(jnp.array([0.9, 0.7, 0.75]))
  np.testing.assert_allclose(drops, [0.2, -0.05], rtol=1e-5)


def test_prompts_by_hand():
  """E0: two vectors on one node add up, and others stay."""
  world = world_of().replace(reach=0.5)
  state = world.reset(jax.random.key(0))
  key = jax.random.key(1)
  for vector in ([1.0, 0, 2], [1.0, 2, 0]):
    x = graphs.place(jnp.int32(3), NODES)
    action = jnp.concatenate([x[None], jnp.array(vector)])
    state, _, done = world.step(state, action, key)
  np.testing.assert_array_equal(state.prompt_NF[3], [1.0, 1.0, 1.0])
  assert not jnp.delete(state.prompt_NF, 3, axis=0).any() and not done
  numbers = jnp.arange(NODES)
  np.testing.assert_array_equal(
    world.node(graphs.place(numbers, NODES)), numbers
  )
  assert world.node(jnp.float32(1.0)) == NODES - 1


def test_triangles_by_hand():
  """E0."""
  path = jnp.zeros((4, 4)).at[0, 1].set(1).at[1, 2].set(1).at[2, 3].set(1)
  path = path + path.T
  assert graphs.has_triangle(path) == 0
  assert graphs.has_triangle(path.at[0, 2].set(1).at[2, 0].set(1)) == 1
  share = graphs.drawn(jax.random.key(0), 2000, 12, 1).label_G.mean()
  assert 0.4 < share < 0.6


def test_a_member_learns_to_lower_the_loss():
  """The drop of the loss after 60 batches is above that of the first ones."""
  world = world_of(4)
  one = LEARNER.init(jax.random.key(3))
  others = members(2)
  log_sd, entropy = jnp.float32(-1.0), jnp.float32(0.0)
  learner = LEARNER.replace(pull_node=0.0, pull_vector=0.0, limit_node=0.05)

  @jax.jit
  def run(key):
    def batch(state, number):
      params, _ = state
      single = jax.tree.map(lambda x: x[None], params)
      actor = Prompter(learner=learner, members=single, log_sd=log_sd)
      keys = jax.random.split(jax.random.fold_in(key, number), 16)
      steps = jax.vmap(lambda k: unroll(world, actor, k, 1, NODES))(keys)
      made = learner.batch(params, steps, log_sd)
      new = learner.update(state, others, made, log_sd, entropy)
      return new, steps.reward.sum(axis=1).mean()

    start = one, learner.optimizer.init(one)
    return jax.lax.scan(batch, start, jnp.arange(60))[1]

  gain = run(jax.random.key(4))
  assert gain[-10:].mean() > gain[:10].mean() + 0.1


def test_updates_end_at_the_limit():
  """E0: with limits of 0 only the first step is made."""
  world = world_of()
  one, others = LEARNER.init(jax.random.key(3)), members(2)
  single = jax.tree.map(lambda x: x[None], one)
  log_sd = jnp.float32(0.0)
  actor = Prompter(learner=LEARNER, members=single, log_sd=log_sd)
  keys = jax.random.split(jax.random.key(0), 8)
  steps = histories(world, actor, keys, 1, NODES)
  batch = LEARNER.batch(one, steps, log_sd)
  _, metrics = LEARNER.loss(one, others, batch, log_sd, jnp.float32(0.0))
  np.testing.assert_allclose(metrics['node'], 0.0, atol=1e-6)

  def after(learner):
    start = one, learner.optimizer.init(one)
    return learner.update(start, others, batch, log_sd, jnp.float32(0.0))[0]

  # The first step is made from ratios of 1, the second is the last one.
  short = after(LEARNER.replace(limit_node=0.0, limit_vector=0.0))
  long = after(LEARNER.replace(limit_node=9.0, limit_vector=9.0))
  two = after(LEARNER.replace(updates=2, limit_node=9.0, limit_vector=9.0))

  def gap(a, b):
    return max(
      float(jnp.abs(x - y).max())
      for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )

  assert gap(short, two) < gap(long, two)


def smaller(world, nodes=(2, 5, 3, 5, 4, 1)):
  """The world with graphs of unequal sizes, padded."""
  data = world.graphs._replace(nodes_G=jnp.array(nodes))
  real = data.real()
  edges = data.adjacency_GNN * real[:, :, None] * real[:, None]
  return world.replace(graphs=data._replace(adjacency_GNN=edges))


def test_padding_changes_nothing():
  """E1: a graph of 3 nodes among larger ones is as it is without padding."""
  padded = smaller(world_of())
  data, cut = padded.graphs, slice(3)
  single = graphs.Graphs(
    data.adjacency_GNN[2:3, cut, cut],
    data.features_GNF[2:3, cut],
    data.label_G[2:3],
  )
  bare = padded.replace(graphs=single)
  key = jax.random.key(0)
  state = padded.begin(padded.reset(key)._replace(graph=jnp.int32(2)), key)
  other = bare.reset(key)
  for node in (1, 4, 0):  # the second one is padding, which nobody prompts
    vector = jnp.array([0.5, -1.0, 2.0])
    x = graphs.place(jnp.int32(node), NODES)
    state, reward, done = padded.step(state, jnp.append(x, vector), key)
    seen = padded.observe(state).reshape(NODES, WIDTH + 1)
    np.testing.assert_array_equal(seen[:, -1], [1, 1, 1, 0, 0])
    assert not seen[3:].any()
    if node == 4:
      np.testing.assert_allclose(reward, 0.0, atol=1e-6)
      assert not done
      continue
    x = graphs.place(jnp.int32(node), 3)
    other, paid, _ = bare.step(other, jnp.append(x, vector), key)
    np.testing.assert_allclose(reward, paid, rtol=1e-4, atol=1e-6)
    whole = bare.observe(other).reshape(3, WIDTH + 1)
    np.testing.assert_allclose(seen[:3], whole, rtol=1e-5, atol=1e-6)
  assert done  # after as many steps as the graph has nodes


def test_padding_is_never_chosen():
  """E0: by members or their ensemble; updates are finite."""
  world = smaller(world_of())
  log_sd, entropy = jnp.float32(0.0), jnp.float32(0.01)
  keys = jax.random.split(jax.random.key(2), 12)
  for number in (1, 3):
    actor = Prompter(learner=LEARNER, members=members(number), log_sd=log_sd)
    steps = histories(world, actor, keys, 1, NODES)
    real = steps.obs.reshape(12, NODES, NODES, WIDTH + 1)[..., -1]
    node = world.node(steps.action[..., 0])
    assert jnp.take_along_axis(real, node[..., None], axis=2).all()
    # Episodes are as long as their graphs, and the next one follows at once.
    count = real[:, 0].sum(axis=1).astype(int)
    assert steps.done[jnp.arange(12), count - 1].all()
  one = jax.tree.map(lambda x: x[0], members(1))
  batch = LEARNER.batch(one, steps, log_sd)
  start = one, LEARNER.optimizer.init(one)
  new, _ = LEARNER.update(start, members(2), batch, log_sd, entropy)
  assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(new))


@pytest.mark.parametrize(
  'change, message',
  [
    ({'features_GNF': jnp.ones((5, NODES, 1))}, 'features_GNF has shape'),
    ({'features_GNF': jnp.ones((6, 4, 1))}, 'features_GNF has shape'),
    ({'label_G': jnp.full(6, jnp.nan)}, 'label_G has a number that is not'),
    ({'nodes_G': jnp.array([1, 2])}, 'nodes_G has shape'),
    (
      {'nodes_G': jnp.array([1, 2, 3, 4, 5, 6])},
      'nodes_G = .* expected 1 to 5',
    ),
    ({'nodes_G': jnp.ones(6, int)}, 'adjacency_GNN has an edge to padding'),
    ({'adjacency_GNN': jnp.ones((6, 5))}, 'adjacency_GNN has shape'),
    ({'adjacency_GNN': jnp.full((6, 5, 5), 0.5)}, 'adjacency_GNN has a number'),
    (
      {'adjacency_GNN': jnp.zeros((6, 5, 5)).at[0, 1, 2].set(1.0)},
      'adjacency_GNN has an edge of one direction',
    ),
  ],
)
def test_graphs_of_unequal_fields_are_refused(change, message):
  world, keys = world_of(), jax.random.split(jax.random.key(0), 2)
  smaller(world).check()
  world = world.replace(graphs=world.graphs._replace(**change))
  with pytest.raises(ValueError, match=f'Graphs.{message}'):
    histories(world, actors.Uniform(space=world.actions), keys, 1, NODES)


def test_any_actor_of_a_box_prompts():
  """E0: a uniform actor plays, as a world of numbers is one of any other."""
  world = world_of()
  actor = actors.Uniform(space=world.actions)
  steps = histories(world, actor, jax.random.split(jax.random.key(0), 4), 1, 5)
  assert steps.valid.all() and steps.done[:, -1].all()


def test_sizes_are_checked():
  with pytest.raises(ValueError, match='Hybrid.clip = -1'):
    Hybrid(nodes=2, size=2, vector=2, clip=-1.0)
