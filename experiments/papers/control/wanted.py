"""OPPO (C68): preferences "ends nearer to the first goal", no reward."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, worlds
from rl_jax.control.base import Actor
from rl_jax.control.preferred import Imitating, Preferred, Segments
from rl_jax.types import Array

STEPS, EACH, TEST = 20, 40, 64
GOALS = ((0, 0), (4, 4), (0, 4))
METRIC = 'distance to the wanted goal after 20 steps, cells'


def world() -> worlds.PointMaze:
  """An open room; the goal of the world itself is not used."""
  return worlds.PointMaze(maze=worlds.OPEN, start=(2, 2), ends=False)


def ends(actor: Actor, key: Array, number: int) -> tuple[Segments, Array]:
  """Segments, and their distances to the first goal at the end."""
  steps = policies.play(world(), actor, jax.random.split(key, number), STEPS)
  assert steps.next_obs is not None
  place = (steps.next_obs[:, -1] + 1) / 2 * world().size_2[None]
  wanted = jnp.asarray(GOALS[0], jnp.float32) + 0.5
  far_N = jnp.sqrt(((place - wanted[None]) ** 2).sum(axis=1))
  return Segments(steps.obs, steps.action), far_N


def measure(key_S: Array, scale: float) -> Results:
  """Conditioned on w, on embeddings of good and bad segments, and on none."""
  updates = max(1, round(2000 * scale))
  learner = Preferred()

  def one(key: Array) -> dict[str, Array]:
    sources: list[Actor] = [
      actors.WayPoints(world=world(), goal=goal, noise=0.5) for goal in GOALS
    ]
    sources.append(actors.Uniform(space=world().actions))
    parts = [
      ends(actor, jax.random.fold_in(key, n), EACH)
      for n, actor in enumerate(sources)
    ]
    data, far_N = jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)
    state, _ = learner.fit(data, -far_N, key, updates)
    z_ND = learner.embed(state.params, data)
    order = jnp.argsort(far_N)
    tenth = len(far_N) // 10
    arms = {
      'the learned w': state.w,
      'mean z of the best tenth': z_ND[order[:tenth]].mean(axis=0),
      'mean z of the worst tenth': z_ND[order[-tenth:]].mean(axis=0),
      'mean z of all segments': z_ND.mean(axis=0),
    }
    test = jax.random.fold_in(key, 9)
    found = {
      name: ends(
        Imitating(learner=learner, params=state.params, z=z), test, TEST
      )[1].mean()
      for name, z in arms.items()
    }
    return found | {'data': far_N.mean()}

  return {METRIC: jax.tree.map(np.array, policies.over_seeds(one, key_S))}


ROW = Row(
  'OPPO (C68), three goals in an open room',
  (
    Claim(
      'with the learned w it ends nearer than half of the mean of the data',
      METRIC,
      'the learned w',
      'data',
      0.5,
    ),
    Claim(
      'w is within 1.5 times the distance of the mean of the best tenth',
      METRIC,
      'the learned w',
      'mean z of the best tenth',
      1.5,
    ),
  ),
  measure,
)
