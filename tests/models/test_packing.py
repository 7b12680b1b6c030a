"""Packing: exact inverses, a capacity that always fits, no communication."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import collectives, scoring, sharding
from rl_jax.models import packing, transformer


@pytest.fixture(autouse=True)
def short_responses(monkeypatch):
  """Responses of the tests are shorter than those that are worth packing."""
  monkeypatch.setattr(packing, 'SHORTEST', 2)


def test_pack_and_unpack():
  """E0, by hand: two groups of five places, three slots.

  The third group has more tokens than slots: the last is lost, not moved.
  """
  real_NL = jnp.asarray([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 1, 1]])
  x_NL2 = jnp.arange(1.0, 31).reshape(3, 5, 2)
  pack, unpack = packing.movers(real_NL, 3)
  packed = pack(x_NL2)
  first = [[1, 7, 0], [0, 0, 0], [21, 23, 27]]
  np.testing.assert_array_equal(packed[..., 0], first)
  back = [[1, 0, 0, 7, 0], [0] * 5, [21, 23, 0, 27, 0]]
  np.testing.assert_array_equal(unpack(packed)[..., 0], back)
  kept = real_NL.at[2, 4].set(0)[..., None]
  np.testing.assert_array_equal(unpack(packed), x_NL2 * kept)
  # Garbage in unused slots reaches no place.
  np.testing.assert_array_equal(unpack(packed + 5) - 5 * kept, unpack(packed))


def test_nothing_moves_without_slots():
  """The plain program is the one there was before."""
  x = jnp.ones((1, 3))
  for move in packing.movers(jnp.asarray([[1, 0, 1]]), None):
    assert move(x) is x


def test_gradients_are_the_other_way():
  """E0: both Jacobians are the transposes of the maps, and gathers."""
  rng = np.random.default_rng(0)
  real_NL = jnp.asarray(rng.integers(0, 2, (4, 6)))
  pack, unpack = packing.movers(real_NL, 4)

  for move, inputs, outputs in ((pack, 6, 4), (unpack, 4, 6)):
    eye = lambda size: jnp.tile(jnp.eye(size)[None], (4, 1, 1))
    matrix_NOI = move(eye(inputs))
    _, back = jax.vjp(move, jnp.ones((4, inputs, outputs)))
    (transposed_NIO,) = back(eye(outputs))
    np.testing.assert_array_equal(transposed_NIO.swapaxes(1, 2), matrix_NOI)
    assert matrix_NOI.sum() == np.minimum(real_NL.sum(axis=1), 4).sum()
    gradient = jax.grad(lambda x, move=move: move(x).sum())
    text = str(jax.make_jaxpr(gradient)(jnp.ones((4, inputs))))
    assert 'gather' in text and 'scatter' not in text


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
  """Nor another one than half of the places, so that programs stay few."""
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
  """A second program would cost more than it ever saves."""
  monkeypatch.setattr(packing, 'SHORTEST', 6)
  assert packing.capacity(np.ones((2, 2), int), 5) is None
  assert packing.capacity(np.ones((2, 2), int), 6) == 5


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
    stats = scoring.token_statistics(
      params, tiny.CFG, traj, ('entropy',), 1.0, capacity=capacity
    )
    return sum((jnp.cos(x) * traj.mask_BT).sum() for x in stats.values())

  def compiled(capacity, *args):
    loss = functools.partial(gradient, capacity=capacity)
    return jax.jit(jax.grad(loss)).lower(*args).compile()

  expected = compiled(None, tiny.params(), traj)(tiny.params(), traj)
  mesh = sharding.make_mesh(sharding.MeshConfig(data=2, fsdp=2, tensor=2))
  with jax.set_mesh(mesh):
    specs = transformer.specs(tiny.CFG)
    args = (
      jax.device_put(tiny.params(), sharding.param_shardings(specs, mesh)),
      jax.device_put(traj, sharding.rows(mesh)),
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
