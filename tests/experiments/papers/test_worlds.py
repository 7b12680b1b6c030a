"""Every method, and each of its pieces, acts in a world that is shipped."""

import dataclasses
import functools

import jax
import pytest

from experiments.flags import configuration
from experiments.papers.worlds import where
from experiments.reports import influence_run
from rl_jax.data.recorded_checks import reads_mismatched
from rl_jax.learning import influence
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward
from rl_jax.measures.influence import TOLERANCE
from rl_jax.rollouts.wrappers.against import Against

pytestmark = pytest.mark.usefixtures('no_mesh_left')

KEY = jax.random.key(0)
ON_ROWS = [n for n, place in where.WHERE.items() if not place.loop]
LOOPS = [n for n, place in where.WHERE.items() if place.loop]
# Of several worlds and kinds of pieces; each compiles in about two seconds.
FAST = ('hapo', 'tis', 'dpo', 'ipo', 'dr_grpo', 'topr', 'par')


def loaded(name):
  """(method, its baseline) in the method's world."""
  place = where.place_of(name)
  method = configuration.build(
    place.world, name, [f'method.{text}' for text in place.sets]
  ).method
  return method, configuration.load_method(where.baseline_of(name))


@functools.partial(jax.jit, static_argnums=0)
def compared(forward, methods, parts, states):
  """Numbers of one minibatch: the whole rollout."""
  old, now, policies, sampler, traj, shift = parts
  method, baseline = (
    methods[n] for n in (influence.METHOD, influence.BASELINE)
  )
  names = sorted({*method.policies(), *baseline.policies()} - {'reference'})
  others = dict.fromkeys(names, policies[1])
  frozen = {'policies': {'reference': policies[0], **others}}
  behaviour = influence.scored(
    forward, {**frozen, **sampler}, traj, methods
  ).logp_old_BT
  traj = traj.replace(logp_behaviour_BT=behaviour)
  rows = influence.scored(forward, {**frozen, **old}, traj, methods)
  # An earlier iteration: of other prompts, but where they return.
  before = rows.replace(prompt_id_N=rows.prompt_id_N + shift)
  for one in (baseline, method):
    own = {n: states[n] for n in one.init_state(1)}
    states = {**states, **make_batch(one, before, own)[1]}
  trajs = influence.batches(methods, rows, states)
  found = influence.compare(forward, frozen, now, methods, trajs, KEY, states)
  dropped = 0.0
  if method.group_filter is not None:
    dropped = 1.0 - method.group_filter(rows).mean()
  changed = influence.rows_changed(forward, {**frozen, **old}, rows, method)
  return found | {
    'influence/rows_changed': changed,
    'influence/groups_dropped': dropped,
  }


def left_out(name, method, baseline):
  """By path the method without a piece that the baseline lacks.

  And with each of where.PARTS switched off, by what does so.
  """
  lacks = influence.lacking(method, baseline)
  found = influence.variants(method.as_arrays(), baseline.as_arrays())
  found = {path: x for path, x in found.items() if path in lacks}
  for text in where.PARTS.get(name, ()):
    place = where.place_of(name)
    sets = [f'method.{x}' for x in (*place.sets, text)]
    found[text] = configuration.build(
      place.world, name, sets
    ).method.as_arrays()
  return found


def measured(name, world_rows):
  """The numbers of a method in its world, and of its pieces by path."""
  place, (plain, baseline) = where.place_of(name), loaded(name)
  others = left_out(name, plain, baseline)
  method = plain.as_arrays()
  methods = {
    influence.METHOD: method,
    influence.BASELINE: baseline.as_arrays(),
    **others,
  }
  cfg, old, now, policies, sampler, traj = world_rows.world(
    place.world, reads_mismatched(plain)
  )
  if method.num_values > cfg.num_values:
    cfg = dataclasses.replace(cfg, num_values=method.num_values)
    wide = functools.partial(world_rows.with_outputs, count=cfg.num_values)
    old, now, sampler = map(wide, (old, now, sampler))
    policies = [wide(tree) for tree in policies]
  if isinstance(plain.rollout, Against):
    traj = world_rows.opposed(traj, plain.rollout.trained)
  if name == 'oprm':
    traj = world_rows.scored_steps(traj)
  if name == 'remax':
    traj = world_rows.with_greedy_reward(traj)
  states = influence.states_of(
    methods[influence.BASELINE], method.init_state(4000), 4000
  )
  learned = method.init_params()
  now = {**now, **({'pieces': learned} if learned else {})}
  shift = 0 if place.world == 'returning' else 100
  parts = (old, now, policies, sampler, traj, shift)

  def compare(methods):
    return compared(Forward(model=cfg), methods, parts, states)

  try:
    found = compare(methods)
  except (AssertionError, AttributeError, TypeError, ValueError):
    methods = influence.tracing(compare, methods)
    found = compare(methods)
  numbers = {}
  for key, x in found.items():
    path = next((p for p in methods if key.startswith(f'influence/{p}/')), '')
    numbers.setdefault(path, {})[key.rpartition('/')[2]] = float(x)
  return numbers.pop(''), numbers


def acts(numbers):
  """Returns whether the gradient, rows or groups are others.

  Pushes of tokens may differ by 1e-5 of their size, which is not enough.
  """
  away = [1 - numbers['cos'], abs(1 - numbers['ratio'])]
  shares = ('rows_changed', 'groups_dropped')
  return max(away + [numbers.get(n, 0.0) for n in shares]) > TOLERANCE


def check(name, world_rows):
  whole, pieces = measured(name, world_rows)
  assert acts(whole), whole
  # Neither has no gradient, but where no row is rewarded.
  world = where.place_of(name).world
  assert whole['ratio'] > 0 or world == 'unlabelled', whole
  idle = {path for path, numbers in pieces.items() if not acts(numbers)}
  assert idle == set(where.IDLE.get(name, ())), pieces


def test_every_method_has_a_world():
  """Methods without a world are listed with the reason."""
  names = configuration.names('configs.methods')
  assert sorted({**where.WHERE, **where.NOWHERE}) == names
  assert not set(where.WHERE) & set(where.NOWHERE)
  assert set(where.IDLE) <= {*where.WHERE, *where.VARIANTS}


@pytest.mark.parametrize('name', FAST)
def test_acts(name, world_rows):
  check(name, world_rows)


@pytest.mark.slow
@pytest.mark.parametrize(
  'name', [n for n in (*ON_ROWS, *where.VARIANTS) if n not in FAST]
)
def test_all_act(name, world_rows):
  check(name, world_rows)


@pytest.mark.slow
@pytest.mark.parametrize('name', LOOPS)
def test_rollouts_and_draws_change(name):
  """An untrained model: hints, values of cuts, prompts that are not uniform."""
  small = [
    'task.num_train=64',
    'rollout.num_prompts=8',
    'rollout.group_size=4',
    'rollout.max_response_tokens=12',
    'update.minibatch_prompts=8',
    'model.config.num_layers=1',
    'model.config.width=16',
    'model.config.mlp_size=32',
  ]
  world = where.WHERE[name].world
  own = [f'method.{text}' for text in where.WHERE[name].sets]
  config = configuration.build(
    world, name, [*(small if world in ('chain', 'graded') else []), *own]
  )
  baseline = configuration.baseline_of(name)
  found = influence_run.measure(influence_run.configured(config, baseline, 2))
  changes = {
    'dr_po': found['rows_changed'],
    'ghpo': found['rows_changed'],
    'guide_grpo': found['rows_changed'],
    'adarft': found['selection'],
    'mopps': found['selection'],
    'policy_rollout': found['rows_changed'],
    'rex_rag': found['rows_changed'],
    'cosmos': 1 - found['cos'],
    'mcts_dpo': 1 - found['cos'],
    'spo_chain': 1 - found['cos'],
    'spo_tree': 1 - found['cos'],
  }
  assert found['acts'] and changes[name] > 0.05, found
