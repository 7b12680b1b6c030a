"""Packing: exact inverses, a capacity that always fits, no communication."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.models import packing, transformer
from rl_jax.planning import collectives
from rl_jax.runtime import mesh as mesh_lib


@pytest.fixture(autouse=True)
def short_responses(monkeypatch):
  """Packs the short responses of these tests, too."""
  monkeypatch.setattr(packing, 'SHORTEST', 2)


def test_pack_and_unpack():
  """E0, by hand: groups of five places, three slots.

  The third group has more tokens than slots: the last is lost, not moved.
  """
  real_NL = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 1, 1]])
  x_NL2 = np.arange(1.0, 31, dtype=np.float32).reshape(3, 5, 2)

  @jax.jit
  def both(real_NL, x_NL2):
    pack, unpack = packing.movers(real_NL, 3)
    packed = pack(x_NL2)
    # Values in slots without a token must not reach any place.
    return packed, unpack(jnp.where(packed > 0, packed, 99.0))

  packed, back = both(real_NL, x_NL2)
  first = [[1, 7, 0], [0, 0, 0], [21, 23, 27]]
  np.testing.assert_array_equal(packed[..., 0], first)
  kept_NL = real_NL * [[1] * 5, [1] * 5, [1, 1, 1, 1, 0]]
  np.testing.assert_array_equal(back, x_NL2 * kept_NL[..., None])


def test_nothing_moves_without_slots():
  """Without a capacity the program does not change."""
  x = jnp.ones((1, 3))
  for move in packing.movers(jnp.asarray([[1, 0, 1]]), None):
    assert move(x) is x


def test_gradients_are_the_other_way():
  """E0: both Jacobians are the transposes of the maps, and gathers."""
  real_NL = np.random.default_rng(0).integers(0, 2, (4, 6))

  def eye(size):
    return jnp.tile(jnp.eye(size)[None], (4, 1, 1))

  def matrices(real_NL):
    found = []
    pack, unpack = packing.movers(real_NL, 4)
    for move, inputs, outputs in ((pack, 6, 4), (unpack, 4, 6)):
      _, back = jax.vjp(move, jnp.ones((4, inputs, outputs)))
      found.append((move(eye(inputs)), *back(eye(outputs))))
    return found

  assert 'scatter' not in str(jax.make_jaxpr(matrices)(real_NL))
  for matrix_NOI, transposed_NIO in jax.jit(matrices)(real_NL):
    np.testing.assert_array_equal(transposed_NIO.swapaxes(1, 2), matrix_NOI)
    assert matrix_NOI.sum() == np.minimum(real_NL.sum(axis=1), 4).sum()


@pytest.mark.parametrize(
  ('length_NG', 'expected'),
  [
    ([[5, 1], [1, 0]], 4),  # 4 + 0 fed tokens of 2 * 4 places
    ([[5, 2], [1, 0]], None),  # 4 + 1: one group is enough
    ([[3, 3], [4, 2]], 4),
    ([[5, 5], [5, 5]], None),
    ([[0, 0], [0, 0]], 4),
    ([[5, 2, 1]], 6),  # of 3 * 4 places
    ([[3], [2]], 2),
    ([[4], [2]], None),
  ],
)
def test_capacities_by_hand(length_NG, expected):
  """Responses of 5 tokens, of which the last is never fed."""
  assert packing.capacity(np.asarray(length_NG), 5) == expected


def test_a_capacity_that_does_not_fit_is_never_chosen():
  """It is always half of the places, so that there are few programs."""
  rng, chosen = np.random.default_rng(0), 0
  for _ in range(300):
    N, G, T = rng.integers(1, 5, 3) + (0, 0, 2)
    length_NG = rng.integers(0, rng.integers(1, T + 1) + 1, (N, G))
    found = packing.capacity(length_NG, T)
    fed_N = np.maximum(length_NG - 1, 0).sum(axis=1)
    half = -(-G * (T - 1) // 2)
    assert found == (half if fed_N.max() <= half else None)
    chosen += found is not None
  assert 100 < chosen < 290


def test_short_responses_are_not_packed(monkeypatch):
  """Compiling a second program would cost more than it saves."""
  monkeypatch.setattr(packing, 'SHORTEST', 6)
  assert packing.capacity(np.ones((2, 2), int), 5) is None
  assert packing.capacity(np.ones((2, 2), int), 6) == 5


@pytest.mark.devices
def test_groups_stay_on_their_devices():
  """No collective in packing, unpacking and the gradient of both."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))

  def gradient(real_NL, x_NLD):
    def loss(x_NLD):
      pack, unpack = packing.movers(real_NL, 3)
      return jnp.sin(unpack(jnp.cos(pack(x_NLD)))).sum(axis=(1, 2))

    return jax.vjp(loss, x_NLD)[1](jnp.ones(8))

  shapes = [
    jax.ShapeDtypeStruct(shape, jnp.float32, sharding=mesh_lib.rows(mesh))
    for shape in ((8, 5), (8, 5, 2))
  ]
  with jax.set_mesh(mesh):
    compiled = jax.jit(gradient).lower(*shapes).compile()
  assert not collectives.count(compiled.as_text(), devices=8)
  assert 'gather(' in compiled.as_text()


@pytest.mark.slow
@pytest.mark.devices
def test_on_a_mesh(tiny):
  """E1: gradients of log-probs; nothing is sent that was not sent before."""
  traj = tiny.rollout()
  length_B = jnp.asarray([5, 0, 1, 4, 2, 2, 1, 1])
  on_BT = jnp.arange(5)[None] < length_B[:, None]
  traj = traj.replace(
    mask_BT=on_BT.astype(jnp.float32), kind_BT=on_BT.astype(jnp.int32)
  )

  def gradient(params, traj, capacity):
    stats = statistics.token_statistics(
      Forward(model=tiny.CFG, capacity=capacity), params, traj, ('entropy',)
    )
    return sum((jnp.cos(x) * traj.mask_BT).sum() for x in stats.values())

  def compiled(capacity, *args):
    loss = functools.partial(gradient, capacity=capacity)
    return jax.jit(jax.grad(loss)).lower(*args).compile()

  expected = compiled(None, tiny.params(), traj)(tiny.params(), traj)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))
  with jax.set_mesh(mesh):
    specs = transformer.specs(tiny.CFG)
    args = (
      jax.device_put(tiny.params(), mesh_lib.param_shardings(specs, mesh)),
      jax.device_put(traj, mesh_lib.rows(mesh)),
    )
    packed = compiled(4, *args)
    gap = tiny.relative_gap(packed(*args), expected)
    sent = [
      {(c.kind, c.group): c.bytes for c in collectives.count(text, devices=8)}
      for text in (packed.as_text(), compiled(None, *args).as_text())
    ]
  assert gap < 1e-5
  assert sent[0].keys() <= sent[1].keys() and sent[0]
  assert all(sent[0][key] <= sent[1][key] for key in sent[0])
