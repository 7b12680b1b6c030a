"""Rows that begin as references do: how far, what is drawn, what is trained."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.forced import cut_lengths
from rl_jax.rollouts.wrappers.dataset_reset import DatasetReset, references
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.types import FORCED, PAD, POLICY
from rl_jax.worlds import Arithmetic, KeyDoor

N, G, T = 2, 6, 6
EOS = 1
SAMPLING = decoding.SamplingConfig(eos_ids=(EOS,))
KEY = jax.random.key(3)


class Targets(Arithmetic):
  """The reference is the answer of the example."""

  alphabet = '0123456789'

  def target(self, example):
    """The answer is the target."""
    return example.answer


def examples(*answers):
  """One for each reference."""
  return [Example(prompt='1', answer=x, id=i) for i, x in enumerate(answers)]


class Eagerly:
  """The arguments that the collector gives to the piece."""

  def __init__(self, *answers, task=None):
    self.task, self.key = task or Targets(), KEY
    self.tokenizer = CharTokenizer(Targets.alphabet)
    self.examples = examples(*answers)

  def run_rows(self, function, *arrays):
    """Without a mesh."""
    return function(*arrays)


def start(first_serial=0, prompts=((3, 4), (0, 5))):
  """Empty rows of the prompts."""
  prompt_NP = np.array(prompts)
  return decoding.start_trajectories(
    prompt_NP,
    (prompt_NP > 0).astype(np.float32),
    np.arange(len(prompt_NP)),
    group_size=G,
    max_response_tokens=T,
    first_serial=first_serial,
  )


def begun(beta=1.0, answers=('1234', '56'), traj=None):
  """Rows of two prompts that begin with parts of their references."""
  piece = DatasetReset(beta=beta)
  return piece.begin(start() if traj is None else traj, Eagerly(*answers))


@functools.lru_cache
def generate(tiny):
  """Jitted sampling of the tiny model."""
  jitted = jax.jit(
    functools.partial(
      decoding.generate, cfg=tiny.CFG, sampling=SAMPLING, max_new_tokens=T
    )
  )
  params = tiny.params()
  return lambda traj: jitted(params, traj=traj, key=KEY)


def test_lengths_by_hand():
  """L = 5 has the four places 1 .. 4, each a quarter of [0, 1); L = 2 has one,
  L = 1 and 0 have none. beta .5 leaves draws from .5 on at 0."""
  length = jnp.array([5, 5, 5, 5, 5, 5, 2, 1, 0])
  whether = jnp.array([0.4, 0.4, 0.4, 0.4, 0.49, 0.5, 0.0, 0.0, 0.0])
  where = jnp.array([0.0, 0.24, 0.25, 0.74, 0.99, 0.99, 0.99, 0.5, 0.5])

  def lengths(beta):
    return cut_lengths(beta, length, whether, where).tolist()

  assert lengths(0.5) == [1, 1, 2, 3, 4, 0, 1, 0, 0]
  assert lengths(1.0) == [1, 1, 2, 3, 4, 4, 1, 0, 0]
  assert lengths(0.0) == [0] * 9


def test_every_length_is_as_frequent():
  """2000 rows of L = 5: 500 each, within four standard deviations of 19."""
  rows = decoding.start_trajectories(
    np.ones((1, 1)),
    np.ones((1, 1)),
    np.zeros(1),
    group_size=2000,
    max_response_tokens=T,
  )
  found = begun(answers=('1234',), traj=rows).length_B
  count = np.bincount(found, minlength=6)
  assert count[0] == count[5] == 0
  np.testing.assert_allclose(count[1:5], 500, atol=80)


def test_beginnings_are_those_of_references():
  """References '1234' and '56', each with an end token: l <= 4 and l <= 2."""
  traj = begun()
  own = Eagerly().tokenizer.encode
  whole = np.zeros((N, T), int)
  whole[0, :4], whole[1, :2] = own('1234'), own('56')
  given = np.arange(T)[None] < np.asarray(traj.length_B)[:, None]
  expected = np.where(given, np.repeat(whole, G, axis=0), 0)
  np.testing.assert_array_equal(traj.response_BT, expected)
  np.testing.assert_array_equal(traj.kind_BT, np.where(given, FORCED, PAD))
  np.testing.assert_array_equal(traj.extras['prefix_B'], traj.length_B)
  length_NG = np.asarray(traj.length_B).reshape(N, G)
  assert (length_NG.min(1) >= 1).all()
  assert length_NG[0].max() <= 4 and length_NG[1].max() <= 2
  assert len(set(length_NG[0].tolist())) > 1  # rows of a group differ


def test_long_references_leave_room_for_a_token():
  """Cut at T = 6: the end token is not part, l <= 5."""
  token_NT, length_N = references(Eagerly('12345678', ''), T)
  own = Eagerly().tokenizer.encode
  np.testing.assert_array_equal(token_NT, [own('123456'), [EOS] + [0] * 5])
  assert length_N.tolist() == [6, 1]
  found = begun(answers=('12345678', '')).length_B.reshape(N, G)
  assert 1 <= found[0].min() and found[0].max() <= 5
  assert not found[1].any()


def test_data_have_references_of_their_own():
  """The first of several; of a conversation the first turn."""
  steps = RecordedResponse(steps=('1', '2'))
  task = types.SimpleNamespace(
    recorded=lambda example: (steps, RecordedResponse(text='9'))
  )
  token_NT, length_N = references(Eagerly('5', task=task), T)
  own = Eagerly().tokenizer.encode
  assert token_NT[0, :3].tolist() == [*own('12'), EOS]
  assert length_N.tolist() == [3]
  turns = RecordedResponse(turns=(('12', '34'), ('56', '')), turn_ends=True)
  task = types.SimpleNamespace(recorded=lambda example: (turns,))
  token_NT, length_N = references(Eagerly('5', task=task), T)
  assert token_NT[0].tolist() == [*own('12'), EOS, 0, 0, 0]


def test_draws_are_those_of_the_row():
  """E0: of the second prompt only, and not of the next round."""
  both = begun()
  alone = begun(answers=('56',), traj=start(1, ((0, 5),)))
  np.testing.assert_array_equal(alone.length_B, both.length_B[G:])
  later = begun(traj=start(2))
  assert (later.length_B != both.length_B).any()


def test_given_tokens_are_kept_and_not_trained(tiny):
  """Tokens after it are the policy's, one at least."""
  traj = begun(answers=('12345678', '234'))
  out = generate(tiny)(traj)
  given_BT = traj.kind_BT == FORCED
  np.testing.assert_array_equal(
    jnp.where(given_BT, out.response_BT, 0), traj.response_BT
  )
  np.testing.assert_array_equal(out.kind_BT == FORCED, given_BT)
  np.testing.assert_array_equal(out.mask_BT, out.kind_BT == POLICY)
  assert (out.logp_behaviour_BT[given_BT] == 0).all()
  assert (out.mask_BT.sum(1) >= 1).all()


def test_without_resets_it_is_plain_sampling(tiny):
  """E0: beta = 0."""
  out, plain = generate(tiny)(begun(beta=0.0)), generate(tiny)(start())
  for field in dataclasses.fields(plain):
    if field.name not in ('extras', 'group_size'):
      jax.tree.map(
        np.testing.assert_array_equal,
        getattr(out, field.name),
        getattr(plain, field.name),
      )


def test_without_resets_the_method_is_ppo(toy):
  """All else is that of configs/methods/ppo.py."""
  method = toy.get_method('dr_po')
  assert method.rollout == DatasetReset(beta=1.0)
  assert dataclasses.replace(method, rollout=None) == toy.get_method('ppo')


def test_given_tokens_have_no_gradient(toy):
  """Two tokens of four are given; all but one of the other row: the last token
  is a bandit with A = r - V, whitened over the three trained tokens."""
  mask_BT = np.array([[0, 0, 1, 1], [0, 0, 0, 1]])
  logp_BT, value_BT = -1.0 * mask_BT, 0.5 * mask_BT
  traj = toy.trajectories(
    mask_BT,
    group_size=2,
    reward_B=np.array([1.0, 0.0]),
    values_BT=value_BT,
    **dict.fromkeys(
      ('logp_old_BT', 'logp_behaviour_BT', 'logp_ref_BT'), logp_BT
    ),
  )
  stats = {'logp': jnp.array(logp_BT), 'values': jnp.array(value_BT)}
  method = toy.get_method('dr_po').as_arrays()
  grads = toy.run(method, traj, stats, method.init_state(2), KEY)['grads']
  for grad in grads.values():
    np.testing.assert_array_equal(grad * (1 - mask_BT), 0)
  push = -np.asarray(grads['logp'])
  # delta: 0 and 1/2 in row 0, so A = .475, .5; row 1 has -1/2.
  advantage = np.array([0.475, 0.5, -0.5])
  expected = (advantage - advantage.mean()) / advantage.std(ddof=1) / 3
  np.testing.assert_allclose(push[mask_BT > 0], expected, rtol=1e-5)


def test_tasks_without_references_are_refused():
  """Naming the piece and the task."""
  with pytest.raises(
    ValueError, match='DatasetReset needs .* KeyDoor has neith'
  ):
    DatasetReset().check(CheckContext(task=KeyDoor()))
  DatasetReset().check(CheckContext(task=Targets()))
  with pytest.raises(ValueError, match='DatasetReset.beta = 1.5'):
    DatasetReset(beta=1.5)
