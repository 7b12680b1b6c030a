"""Beacons (C25): sub-goals of a teacher of given accuracy, key and door."""

import jax

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from experiments.papers.control.exploitation import METHOD
from rl_jax.control import rows, sequence, training, worlds
from rl_jax.control.unroll import unroll
from rl_jax.control.wrappers import Guided, SameTask
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward
from rl_jax.types import Array

SIZE, HORIZON, TASKS, GROUP, TEST = 4, 20, 8, 8, 200
METRIC = 'opens the door within 20 steps'
NONE = 'no teacher'


def room(accuracy: float, teaches: bool = True) -> Guided:
  """Key and goal are hidden; the teacher's list is observed."""
  return Guided(
    world=worlds.DarkRoom(size=SIZE, key_door=True),
    horizon=HORIZON,
    accuracy=accuracy,
    teaches=teaches,
    alpha=0.2 if teaches else 0.0,
  )


def success(world: Guided, updates: int, key: Array) -> Array:
  """The share of test tasks that are solved after training."""
  model = sequence.model_for(world, layers=1, width=32)

  def data(params, key):
    actor = policies.trained_actor(world, model, params, HORIZON)
    key_N = jax.random.split(key, TASKS)
    key_NG = jax.vmap(lambda key: jax.random.split(key, GROUP))(key_N)

    def one(task_key, key):
      same = SameTask(world=world, key=task_key)
      return unroll(same, actor, key, 1, HORIZON)

    steps = jax.vmap(jax.vmap(one, in_axes=(None, 0)))(key_N, key_NG)
    steps = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
    return rows.trajectories(world, steps, group_size=GROUP)

  params = sequence.init_params(world, model, key)
  config = OptimizerConfig(learning_rate=3e-3, total_steps=updates)
  params, _ = training.fit(
    Forward(model=model), METHOD, data, params, key, config
  )
  actor = policies.trained_actor(world, model, params, HORIZON)
  test = jax.random.split(jax.random.fold_in(key, 1), TEST)
  steps = policies.play(world, actor, test, HORIZON)
  return (steps.done.sum(axis=1) > 0).mean()


def measure(key_S: Array, scale: float) -> Results:
  """Teachers of three accuracies, and none."""
  updates = max(1, round(150 * scale))
  arms = {f'accuracy {q:g}': room(q) for q in (1.0, 0.5, 0.0)}
  arms[NONE] = room(1.0, teaches=False)

  def one(key: Array) -> dict[str, Array]:
    return {name: success(world, updates, key) for name, world in arms.items()}

  return {METRIC: policies.over_seeds(one, key_S)}


ROW = Row(
  'Words as Beacons (C25), key and door in a room 4x4',
  (
    Claim(
      'with a right teacher the door is opened twice as often',
      METRIC,
      NONE,
      'accuracy 1',
      0.5,
    ),
    Claim(
      'a teacher that is right half of the time still helps',
      METRIC,
      NONE,
      'accuracy 0.5',
    ),
  ),
  measure,
)
