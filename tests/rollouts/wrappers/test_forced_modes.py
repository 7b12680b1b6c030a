"""Forced modes: what is written, what is drawn after it, what is trained."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.methods import a2fm
from configs.worlds import modes
from rl_jax import decoding
from rl_jax.config import validate
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.wrappers.forced_modes import ForcedModes
from rl_jax.tasks.base import TaskTraits
from rl_jax.types import FORCED, PAD, POLICY
from rl_jax.worlds import Chain

N, G, T = 2, 7, 6
SAMPLING = decoding.SamplingConfig(eos_ids=(1,))


class Eagerly:
  """The arguments that the collector gives to the piece."""

  task = Chain(controls=True)
  tokenizer = CharTokenizer(task.alphabet)

  def run_rows(self, function, *arrays):
    """Without a mesh."""
    return function(*arrays)


def start():
  """Empty rows of two prompts."""
  return decoding.start_trajectories(
    np.array([[3, 4], [0, 5]]),
    np.array([[1, 1], [0, 1]]),
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )


@functools.lru_cache
def generate(tiny, slots=None):
  """Jitted sampling of the tiny model."""
  function = functools.partial(
    decoding.generate,
    cfg=tiny.CFG,
    sampling=SAMPLING,
    max_new_tokens=T,
    slots=slots,
  )
  key = jax.random.key(3)
  jitted, params = jax.jit(function), tiny.params()
  return lambda traj: jitted(params, traj=traj, key=key)


def begun(samples=1, **modes):
  """Rows whose modes are texts of the chain's alphabet."""
  sampler = Eagerly()
  sampler.task = types.SimpleNamespace(traits=TaskTraits(modes=modes))
  return ForcedModes(samples=samples).begin(start(), sampler)


def test_beginnings_by_hand():
  """Two rows with '3', two with '14', three free ones in each group."""
  traj = begun(2, short='3', long='14')
  ids = [*Eagerly.tokenizer.encode('314')]
  expected = [
    [ids[0], 0],
    [ids[0], 0],
    ids[1:],
    ids[1:],
    [0, 0],
    [0, 0],
    [0, 0],
  ]
  np.testing.assert_array_equal(traj.response_BT[:, :2], expected * N)
  np.testing.assert_array_equal(traj.response_BT[:, 2:], 0)
  np.testing.assert_array_equal(traj.length_B, [1, 1, 2, 2, 0, 0, 0] * N)
  np.testing.assert_array_equal(
    traj.extras['forced_B'], [1] * 4 * 1 + [0] * 3 + [1] * 4 + [0] * 3
  )
  kinds = jnp.arange(T)[None] < traj.length_B[:, None]
  np.testing.assert_array_equal(traj.kind_BT, jnp.where(kinds, FORCED, PAD))


def test_forced_tokens_are_kept_and_not_trained(tiny):
  """Tokens after it are the policy's; the beginning has no log-prob."""
  traj = begun(2, short='3', long='14')
  out = generate(tiny)(traj)
  forced_BT = traj.kind_BT == FORCED
  np.testing.assert_array_equal(
    jnp.where(forced_BT, out.response_BT, 0), traj.response_BT
  )
  np.testing.assert_array_equal(out.kind_BT == FORCED, forced_BT)
  np.testing.assert_array_equal(out.mask_BT, out.kind_BT == POLICY)
  assert (out.logp_behaviour_BT[forced_BT] == 0).all()
  assert (out.length_B > traj.length_B).all()


@pytest.mark.slow
def test_slots_change_nothing(tiny):
  """E2: forced rows that wait for a slot."""
  traj = begun(2, short='3', long='14')
  found, expected = generate(tiny, slots=3)(traj), generate(tiny)(traj)
  np.testing.assert_array_equal(found.response_BT, expected.response_BT)


def test_free_rows_draw_what_they_would_draw(tiny):
  """E2: without forced rows in front of them."""
  free = generate(tiny)(start())
  out = generate(tiny)(begun(1, short='3', long='14'))
  rows = np.flatnonzero(out.extras['forced_B'] == 0)
  assert len(rows) == N * (G - 2)
  for name in ('response_BT', 'logp_behaviour_BT', 'length_B'):
    np.testing.assert_array_equal(
      getattr(out, name)[rows], getattr(free, name)[rows]
    )


@pytest.mark.parametrize('mode, count', [('', 0), ('123456', 6)])
def test_a_beginning_leaves_room(mode, count):
  with pytest.raises(ValueError, match=f'{count} tokens; at least 1'):
    begun(1, odd=mode)


def test_tasks_and_groups_are_checked():
  """Before anything is compiled."""
  config = modes.get_config(a2fm.get_method())
  validate(config)
  rollout = types.SimpleNamespace(group_size=5)
  piece = ForcedModes(samples=2)
  with pytest.raises(ValueError, match='6 rows, more than rollout.group_size'):
    piece.check(CheckContext(task=config.task, rollout=rollout))
  with pytest.raises(ValueError, match='Chain has none'):
    piece.check(CheckContext(task=Chain(), rollout=rollout))
