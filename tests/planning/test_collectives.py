"""Collectives of a compiled program, and groups that never need one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import batch, microbatches
from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.ops import groups
from rl_jax.planning import collectives
from rl_jax.runtime import mesh as mesh_lib

# A scan of 5 with a sum over 4 devices and a gather over 2 in its body, an
# asynchronous sum over the axis of 4, gather over 2 and sum over one device,
# and a loop whose end depends on data.
HLO = """HloModule jit_f, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%scan_body (p: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %r = f32[8,4]{1,0} all-reduce(%x), replica_groups=[2,4]<=[8], to_apply=%add
  %g = bf16[16]{0} all-gather(%y), replica_groups={{0,1},{2,3}}, dimensions={0}
  ROOT %t = (s32[], f32[8,4]) tuple(%i, %r)
}

%data_body (p: (s32[])) -> (s32[]) {
  %c = s8[6]{0} collective-permute(%z), source_target_pairs={{0,1},{1,0}}
}

ENTRY %main (x: f32[8,4]) -> f32[8,4] {
  %w = (s32[], /*index=1*/f32[8,4]) while(%t0), condition=%add, body=%scan_body, backend_config={"known_trip_count":{"n":"5"}}
  %s = f32[10]{0} all-reduce-start(%q), replica_groups=mesh['a'=2,'b'=4] {'b'}
  %d = f32[10]{0} all-reduce-done(%s)
  %h = (f32[5]{0}, f32[10]{0}) all-gather-start(%q), replica_groups=[4,2]<=[8], dimensions={0}
  %e = f32[10]{0} all-gather-done(%h)
  %n = f32[10]{0} all-reduce-start(%q), replica_groups=[8,1]<=[8], to_apply=%add
  %o = f32[10]{0} all-reduce-done(%n)
  %one = f32[9]{0} all-reduce(%q), replica_groups=[8,1]<=[8], to_apply=%add
  ROOT %v = (s32[]) while(%t1), condition=%add, body=%data_body
}
"""  # noqa: E501


def test_loops_are_multiplied_out():
  """By hand: 5 sums of 128 bytes and 5 gathers of 32; 3 turns of 6 bytes; a sum
  and a gather of 40 bytes, whose groups are those of their -start parts."""
  found = collectives.count(HLO, devices=8, unknown_trips=3)
  by_kind = {(c.kind, c.group): (c.count, c.bytes, c.sent) for c in found}
  assert by_kind == {
    ('all-reduce', 4): (6, 5 * 128 + 40, 1.5 * 680),
    ('all-gather', 2): (6, 5 * 32 + 40, 100.0),
    ('collective-permute', 2): (3, 18, 18),
  }


def test_parts_of_a_transfer_are_not_counted_again():
  """A loop of XLA for TPU that computes while a transfer runs holds none.

  Where the transfer begins in the loop, it is of each turn.
  """
  gather = 'bf16[16]{0} all-gather(%y), replica_groups={{0,1},{2,3}}'
  part = f"""%async_collective_fusion.1 (y: bf16[8]) -> bf16[16] {{
  ROOT %g = {gather}
}}

%fused_computation.1 (y: bf16[8]) -> bf16[16] {{
  ROOT %b = {gather}
}}

%scan_body"""
  text = HLO.replace('%scan_body', part, 1)
  line = '  ROOT %t = (s32[], f32[8,4])'
  step = '  %f = bf16[16] fusion(%y), kind=kCustom, calls=%'
  moved = text.replace(line, f'{step}async_collective_fusion.1\n{line}')
  assert collectives.count(moved, devices=8) == collectives.count(
    HLO, devices=8
  )
  started = text.replace(line, f'{step}fused_computation.1\n{line}')
  (before, after) = (
    collectives.in_loops(text, devices=8, trips=5) for text in (HLO, started)
  )
  counts = [{c.kind: c.count for c in found} for found in (before, after)]
  assert counts[0] == {'all-reduce': 1, 'all-gather': 1}
  assert counts[1] == {'all-reduce': 1, 'all-gather': 2}


def test_text_that_is_no_program_is_refused():
  """Rather than counted as nothing."""
  with pytest.raises(ValueError, match='no ENTRY'):
    collectives.count('stablehlo', devices=8)


def eight():
  """A mesh of 2 x 4 shards of rows."""
  return mesh_lib.make_mesh(
    mesh_lib.MeshConfig(data=2, fsdp=4), jax.devices()[:8]
  )


def found_in(function, *arguments, mesh):
  """Collectives of the function with rows split over all devices."""
  place = mesh_lib.rows(mesh)
  arguments = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), arguments
  )
  with jax.set_mesh(mesh):
    text = jax.jit(function).lower(*arguments).compile().as_text()
  return collectives.count(text, devices=8)


def counted(function, *arguments, mesh):
  """Their kinds."""
  return {c.kind for c in found_in(function, *arguments, mesh=mesh)}


def rollout(toy, groups, size):
  """Trajectories with a reward."""
  mask = np.ones((groups * size, 3), np.float32)
  return toy.trajectories(mask, group_size=size)


@pytest.mark.devices
def test_group_statistics_need_no_collective(toy):
  """Rows split over 8 devices: whole groups lie on each of them."""
  traj = rollout(toy, 16, 4)
  for pieces in (
    (credit.GroupCenter(), credit.GroupScale()),
    (credit.LeaveOneOut(),),
  ):
    method = Method(
      credit=pieces, losses=(losses.Reinforce(),), aggregation=TokenMean()
    ).as_arrays()
    mesh = eight()

    def advantages(traj, method=method):
      return batch.make_batch(method, traj, {})[0].advantages_BT

    assert counted(advantages, traj, mesh=mesh) == set()


@pytest.mark.devices
def test_batch_statistics_do_need_one(toy):
  """The count can see it: whitening takes a mean over all rows."""
  method = Method(
    credit=(credit.Whiten(),),
    losses=(losses.Reinforce(),),
    aggregation=TokenMean(),
  ).as_arrays()

  def advantages(traj):
    return batch.make_batch(method, traj, {})[0].advantages_BT

  assert counted(advantages, rollout(toy, 16, 4), mesh=eight())


@pytest.mark.devices
def test_microbatches_move_no_rows_between_devices(toy):
  """Strided pieces lie where they are; contiguous ones would be moved."""
  traj = rollout(toy, 32, 4)
  mesh = eight()
  pieces = functools.partial(_sum_of_pieces, groups.split)
  assert 'all-gather' not in counted(pieces, traj.response_BT, mesh=mesh)
  assert 'all-to-all' not in counted(pieces, traj.response_BT, mesh=mesh)
  contiguous = functools.partial(_sum_of_pieces, _contiguous)
  assert counted(contiguous, traj.response_BT, mesh=mesh)


@pytest.mark.devices
@pytest.mark.parametrize('method', ['one_pass', 'two_passes'])
def test_microbatches_exchange_one_gradient(toy, method):
  """Bytes between the copies of the parameters: one gradient, by hand; E1.

  Each device sends 2 * 7 / 8 of its bytes, however many microbatches.
  """
  mask_BT = np.random.default_rng(0).integers(0, 2, (128, 3))
  traj = toy.trajectories(mask_BT, group_size=4)
  weight = 0.05 * jnp.sin(jnp.arange(1500.0)).reshape(3, 500)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=8), jax.devices()[:8])

  params = {'w': weight}

  def statistics(params, rows):
    w = params['w']
    logp_BT = jnp.tanh(jnp.sin(rows.response_BT + rows.mask_BT) @ w) @ w.T
    return {'logp': logp_BT}, {}

  def objective(stats, fixed, learned):
    del fixed, learned
    return (stats['logp'] ** 2).mean(), {}

  def gradient(traj, count):
    args = (params, statistics, objective, traj, count)
    if method == 'one_pass':
      return microbatches.one_pass(*args, None)[0]
    known = statistics(params, traj)
    return microbatches.two_passes(*args, known)[0]

  for count in (1, 2, 4):
    found = found_in(functools.partial(gradient, count=count), traj, mesh=mesh)
    sent = sum(c.sent for c in found if c.bytes >= weight.nbytes)
    assert sent == 2 * 7 / 8 * weight.nbytes
  expected = jax.grad(lambda p: objective(*statistics(p, traj), {})[0])(params)
  with jax.set_mesh(mesh):
    summed = jax.jit(gradient, static_argnums=1)(
      jax.device_put(traj, mesh_lib.rows(mesh)), 4
    )
  np.testing.assert_allclose(summed['w'], expected['w'], rtol=1e-5, atol=1e-7)


def _contiguous(x, num_prompts, pieces):
  del num_prompts
  return x.reshape(pieces, -1, *x.shape[1:])


def _sum_of_pieces(split, x):
  """Every row on its own, piece by piece."""

  def body(_, piece):
    return (None, jnp.sin(piece.astype(jnp.float32)).sum(1))

  return jax.lax.scan(body, None, split(x, 32, 2))[1]


@pytest.mark.devices
def test_a_compiled_scan_is_counted(toy):
  """Seven sums over the 8 devices, in a loop of seven."""
  mesh = eight()

  def total(x):
    def body(carry, _):
      return (jnp.sin(carry + x.sum()), None)

    return jax.lax.scan(body, jnp.float32(0.0), None, length=7)[0]

  def outside(x):
    def body(carry, _):
      return (carry + jnp.sin(x + carry).sum(), None)

    return jax.lax.scan(body, jnp.float32(0.0), None, length=7)[0]

  shape = jax.ShapeDtypeStruct((16,), jnp.float32, sharding=mesh_lib.rows(mesh))
  with jax.set_mesh(mesh):
    text = jax.jit(outside).lower(shape).compile().as_text()
    hoisted = jax.jit(total).lower(shape).compile().as_text()
  (found,) = collectives.count(text, devices=8)
  assert (found.kind, found.group, found.count) == ('all-reduce', 8, 7)
  assert found.bytes == 7 * 4
  assert collectives.count(hoisted, devices=8)
