"""Measures the influence of the compared methods on the same rows.

  python -m experiments.papers.worlds.acting
    --out=experiments/papers/worlds/influence.jsonl

The rows are a rollout of the warm start; the weights are those after GRPO's
optimizer steps on it, so that ratios have moved as far as they do at the end of
an iteration. All methods see the first GROUPS of these prompts as one
minibatch; cosine and ratio are against GRPO's gradient there, as
`experiments.influence` defines them. Methods that have a line are left out.
"""

import functools
import json
import os
from typing import Any

from absl import flags
import jax
import jax.numpy as jnp

from experiments.flags import configuration
from experiments.papers.worlds import sweep, trials
from experiments.sweeps import runs as sweep_runs
from rl_jax.learning import influence
from rl_jax.learning.statistics import Forward
from rl_jax.pieces.ops import groups
from rl_jax.records import metrics
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.scanned import program
from rl_jax.runtime import mesh as mesh_lib

_OUT = flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
GROUPS = 16
KEY = jax.random.key(0)


def setting_of(world: str, name: str) -> sweep_runs.Setting:
  """One iteration of a method at its rate, without evaluation."""
  of_world = sweep.COMPARED[world]
  trial = of_world.methods[name]
  more = {**of_world.start, 'iterations': 1, **trial.changes}
  more |= {trials.RATE: trial.rate}
  return sweep_runs.equal_conditions(world, (name,), more, 1)[0]


def moved_rows(world: str) -> tuple[Any, Any]:
  """(rows of the warm start, weights after GRPO's steps on them)."""
  config = sweep_runs.Run(setting_of(world, sweep.BASELINE)).config
  whole = program.WholeRuns([config])
  _, state, kept = whole.run_by_stages(keep=lambda traj: traj)
  rows = jax.tree.map(lambda x: jnp.asarray(x[0, 0]), kept)
  now = jax.tree.map(lambda x: jnp.asarray(x[0]), state.params)
  return groups.take(rows, jnp.arange(GROUPS)), now


# It runs once for every method: most of the time is compilation.
@functools.partial(
  jax.jit,
  static_argnums=0,
  compiler_options={'xla_backend_optimization_level': 0},
)
def compared(
  forward: Forward, methods: Any, old: Any, now: Any, rows: Any, states: Any
) -> dict[str, jax.Array]:
  """Influence on one minibatch; all named policies are the warm start."""
  names = {n for method in methods.values() for n in method.policies()}
  frozen = {'policies': {name: old for name in names}} if names else {}
  rows = influence.scored(forward, {**frozen, **old}, rows, methods)
  trajs = influence.batches(methods, rows, states)
  found = influence.compare(forward, frozen, now, methods, trajs, KEY, states)
  method = methods[influence.METHOD]
  changed = influence.rows_changed(forward, {**frozen, **old}, rows, method)
  dropped = 0.0
  if method.group_filter is not None:
    dropped = 1.0 - method.group_filter(rows).mean()
  return {
    'cos': found['influence/cos'],
    'ratio': found['influence/ratio'],
    'tokens_stopped': found['influence/tokens_stopped'],
    'rows_changed': changed,
    'groups_dropped': dropped,
  }


def measured(world: str, name: str, rows: Any, moved: Any) -> dict[str, Any]:
  """The line of a method."""
  config = sweep_runs.Run(setting_of(world, name)).config
  count = config.task.num_prompts('train')
  mesh = mesh_lib.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    policy = policy_lib.load(config.model, config.task, 0, mesh)
    method = config.method.as_arrays()
    baseline = configuration.load_method(sweep.BASELINE).as_arrays()
    states = influence.states_of(baseline, method.init_state(count), count)
    learned = method.init_params()
    now = {**policy.trainable, **moved}
    now |= {'pieces': learned} if learned else {}
    found = compared(
      Forward(model=policy.model),
      {influence.METHOD: method, influence.BASELINE: baseline},
      policy.trainable,
      now,
      rows,
      states,
    )
  found = {key: round(float(x), 5) for key, x in found.items()}
  # What a selector changes is not seen on given rows.
  return {'world': world, 'method': name, **found, 'selection': 0.0}


def main(argv):
  """Appends what is missing."""
  del argv
  path = _OUT.value
  lines = metrics.read_jsonl(path) if os.path.exists(path) else []
  known = {(line['world'], line['method']) for line in lines}
  for world, of_world in sweep.COMPARED.items():
    names = [
      name
      for name in of_world.methods
      if name != sweep.BASELINE and (world, name) not in known
    ]
    if names:
      rows, moved = moved_rows(world)
    for name in names:
      line = measured(world, name, rows, moved)
      with open(path, 'a') as file:
        file.write(json.dumps(line) + '\n')


if __name__ == '__main__':
  configuration.run(main)
