"""Measures the influence of the compared methods on the same rows.

  python -m experiments.papers.worlds.acting
    --out=experiments/papers/worlds/influence.jsonl

In every world that has a table: the rows are the rollouts of GRPO's ITERATIONS,
of which all have the start as the reference, so that after the first every KL
has something to measure; the weights are those after GRPO's optimizer steps on
them, so that ratios have moved as far as they do at the end of an iteration.
All methods see the first GROUPS of these prompts as one minibatch, and before
it, for what they remember, the same rows as those of other prompts (of the
same, where prompts return). Cosine and ratio are against the gradient of what
the method changes (BASELINE of its file), as `experiments.tools.influence`
defines them, and by piece that the baseline lacks against the method without
it; the numbers are means over ITERATIONS, and a method acts if it does in one
of them.

Of methods that change rollouts, and in the worlds of `looped`, the numbers are
those of `experiments.tools.influence`: means over as many iterations of the
method's own run as the last of ITERATIONS. Methods that have a line are left
out.
"""

import dataclasses
import os
from typing import Any, NamedTuple

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration
from experiments.papers.worlds import (
  influences,
  looped,
  sweep,
  trials,
  where,
)
from experiments.sweeps import runs as sweep_runs
from rl_jax.learning import influence
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward
from rl_jax.measures import influence as run_influence
from rl_jax.pieces.ops import groups
from rl_jax.pieces.roles import CreditContext
from rl_jax.records import metrics
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.scanned import program
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import Trajectories

_OUT = flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
GROUPS = 16
ITERATIONS = (1, 4)  # the start, and a third of the run of `brief`
SEED = 0  # of what methods draw in the loss


def setting_of(
  world: str, name: str, iterations: int = 1
) -> sweep_runs.Setting:
  """A short run of a method at its rate, without evaluation."""
  rates = sweep.rates_of(world)
  more = {**sweep.start_of(world), 'iterations': iterations}
  more |= sweep.methods_of(world).get(name, {})
  more |= {trials.RATE: rates.get(name, min(rates.values()))}
  return sweep_runs.equal_conditions(world, (name,), more, 1)[0]


class Moved(NamedTuple):
  """A rollout of GRPO: weights that sampled it, and those after its steps."""

  rows: Trajectories
  before: dict[str, Any]  # empty: the start
  now: dict[str, Any]


def moved_rows(world: str) -> list[Moved]:
  """The rows of each of ITERATIONS, with the weights before and after it.

  The weights before are those at the end of a shorter run, which draws the same
  (tier E2).
  """
  found = []
  for iteration in ITERATIONS:
    before = _run(world, iteration - 1)[0] if iteration > 1 else {}
    now, kept = _run(world, iteration)
    rows = jax.tree.map(lambda x: jnp.asarray(x[0, -1]), kept)
    rows = groups.take(rows, jnp.arange(GROUPS))
    found.append(Moved(rows, before, now))
  return found


def _run(world, iterations):
  """(weights at the end of GRPO, its rollouts)."""
  setting = setting_of(world, sweep.BASELINE, iterations)
  whole = program.WholeRuns([sweep_runs.Run(setting).config])
  _, state, kept = whole.run_by_stages(keep=lambda traj: traj)
  return jax.tree.map(lambda x: jnp.asarray(x[0]), state.params), kept


def numbers_of(
  forward: Forward, methods: Any, parts: Any, states: Any
) -> dict[str, Any]:
  """Influence on one minibatch; all named policies are the start.

  parts: (weights of the start, those that sampled the rows, weights now, rows,
    ids of the prompts before).
  """
  start, old, now, rows, before_N = parts
  names = {n for method in methods.values() for n in method.policies()}
  frozen = {'policies': {name: start for name in names}} if names else {}
  rows = influence.scored(forward, {**frozen, **old}, rows, methods)
  earlier = rows.replace(prompt_id_N=before_N)
  for one in (methods[influence.BASELINE], methods[influence.METHOD]):
    own = {path: states[path] for path in one.init_state(1)}
    states = {**states, **make_batch(one, earlier, own)[1]}
  trajs = influence.batches(methods, rows, states)
  key = jax.random.key(SEED)
  found = influence.compare(forward, frozen, now, methods, trajs, key, states)
  method = methods[influence.METHOD]
  dropped = 0.0
  if method.group_filter is not None:
    context = CreditContext(rows.reward_B, rows)
    dropped = 1.0 - method.group_filter(context).value.mean()
  return found | {
    'influence/rows_changed': influence.rows_changed(
      forward, {**frozen, **old}, rows, method
    ),
    'influence/groups_dropped': dropped,
  }


# It runs once for every method: most of the time is compilation.
compared = jax.jit(
  numbers_of,
  static_argnums=0,
  compiler_options={'xla_backend_optimization_level': 0},
)


def measured(world: str, name: str, given: list[Moved]) -> influences.Line:
  """The line of a method on the rows of `moved_rows`."""
  config = sweep_runs.Run(setting_of(world, name)).config
  plain = configuration.load_method(where.baseline_of(name))
  count = config.task.num_prompts('train')
  heads = config.method.reads_values or plain.reads_values
  model = dataclasses.replace(config.model, value_head=heads)
  mesh = mesh_lib.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    policy = policy_lib.load(model, config.task, 0, mesh)
    method, baseline = config.method.as_arrays(), plain.as_arrays()
    states = influence.states_of(baseline, method.init_state(count), count)
    learned = method.init_params()
    learned = {'pieces': learned} if learned else {}
    forward = Forward(model=policy.model)
    paths = influence.lacking(config.method, plain)
    methods = {
      path: x
      for path, x in influence.variants(method, baseline).items()
      if path in (influence.METHOD, influence.BASELINE, *paths)
    }
    several = []
    for one in given:
      now = {**policy.trainable, **one.now, **learned}
      old = {**policy.trainable, **one.before}
      shift = 0 if world == 'returning' else one.rows.num_prompts
      before_N = (one.rows.prompt_id_N + shift) % count
      parts = (policy.trainable, old, now, one.rows, before_N)
      try:
        found = compared(forward, methods, parts, states)
      except (AssertionError, AttributeError, TypeError, ValueError):
        # Tracing each of them takes longer than all at once.
        def traced(methods, parts=parts):
          return numbers_of(forward, methods, parts, states)

        methods = influence.tracing(traced, methods)
        found = compared(forward, methods, parts, states)
      # What a selector changes is not seen on given rows.
      found = {n.removeprefix('influence/'): x for n, x in found.items()}
      several.append(found | {'selection': 0.0})
  acts = any(map(run_influence.acts, several))
  found = jax.tree.map(lambda *xs: np.mean(xs), *several)
  pieces = {
    path: {n: found[f'{path}/{n}'] for n in ('cos', 'ratio')}
    for path in paths
    if f'{path}/cos' in found
  }
  return influences.line(world, name, {**found, 'acts': acts, 'pieces': pieces})


def measured_in_loop(world: str, name: str) -> influences.Line:
  """The line of a method whose rollouts are its own."""
  if world in looped.WORLDS:
    settings = looped.WORLDS[world].settings(world)
    runs = [x for x in settings if x['seed'] != looped.TUNING_SEED]
    setting = next(x for x in runs if x['method'] == name)
  else:
    setting = setting_of(world, name)
  return influences.of_a_run(world, setting, ITERATIONS[-1])


def main(argv):
  """Appends what is missing."""
  del argv
  path = _OUT.value
  lines = metrics.read_jsonl(path) if os.path.exists(path) else []
  known = {(line['world'], line['method']) for line in lines}

  def missing(world, names, baseline):
    return [
      name for name in names if name != baseline and (world, name) not in known
    ]

  for world in (*sweep.COMPARED, *sweep.WORLDS):
    names = missing(world, sweep.methods_of(world), sweep.BASELINE)
    given = moved_rows(world) if names else []
    for name in names:
      config = sweep_runs.Run(setting_of(world, name)).config
      if config.method.rollout is not None:
        influences.append(path, measured_in_loop(world, name))
      else:
        influences.append(path, measured(world, name, given))
  for world, of in looped.WORLDS.items():
    for name in missing(world, of.rates, of.baseline):
      influences.append(path, measured_in_loop(world, name))


if __name__ == '__main__':
  configuration.run(main)
