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
LEARNER = Hybrid(nodes=NODES, size=WIDTH, vector=FEATURES, width=8, rate=1e-2)


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
  """E1: two steps, gamma .5, lambda .5."""
  found = hybrid.advantages(
    jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]]), 0.5, 0.5
  )
  np.testing.assert_allclose(
    found[0], [1 + 2 - 3 + 0.25 * -2, 2 - 4], rtol=1e-6
  )


def test_equal_members_have_no_penalty():
  """E1: the ensemble of three equal members is each of them."""
  same = jax.tree.map(
    lambda x: jnp.stack([x] * 2), LEARNER.init(jax.random.key(0))
  )
  one = jax.tree.map(lambda x: x[0], same)
  state = jax.random.normal(jax.random.key(1), (7, NODES, WIDTH))
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
    return world.head.loss(obs.reshape(NODES, WIDTH), label)

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
  )[state.graph].reshape(9, -1)
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


def test_any_actor_of_a_box_prompts():
  """E0: a uniform actor plays, as a world of numbers is one of any other."""
  world = world_of()
  actor = actors.Uniform(space=world.actions)
  steps = histories(world, actor, jax.random.split(jax.random.key(0), 4), 1, 5)
  assert steps.valid.all() and steps.done[:, -1].all()


def test_sizes_are_checked():
  with pytest.raises(ValueError, match='Hybrid.clip = -1'):
    Hybrid(nodes=2, size=2, vector=2, clip=-1.0)
