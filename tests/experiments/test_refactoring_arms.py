"""The arms of the pipeline `refactorings`: GRPO and PPO on the same signals."""

import functools

import numpy as np
import pytest

from experiments.flags import configuration
from experiments.pipelines.stages import commands, load
from rl_jax.pieces.roles import CreditContext

SIGNALS = ('called', 'strict', 'behaviour')


@functools.cache
def built(name):
  """The configuration of an arm."""
  _, _, *arguments = commands(load('refactorings'), 'runs')[name]
  values = {'config': [], 'method': [], 'set': []}
  for argument in arguments:
    key, _, value = argument[2:].partition('=')
    values.setdefault(key, []).append(value)
  return configuration.build(
    values['config'][0], values['method'][0], values['set'], []
  )


def test_ppo_by_hand(toy):
  """Three points at the end of three tokens of .1 nats each, values of 0.

  r = [-.02, -.02, 3 - .02]; A_3 = 2.98, A_2 = -.02 + .95 A_3, A_1 likewise.
  A sum of k of .3 lies below 4.8 nats, so that 256 rows of a horizon of 10,000
  take the coefficient down by a fifth of .0256.
  """
  method = built('ppo_called').method
  traj = toy.trajectories(
    np.ones((1, 3)),
    group_size=1,
    logp_old_BT=np.full((1, 3), -1.0),
    logp_ref_BT=np.full((1, 3), -1.1),
    values_BT=np.zeros((1, 3)),
  )
  (penalty,) = method.shaping
  reward_BT, state = penalty(
    CreditContext(np.array([3.0]), traj, penalty.init(1))
  )
  np.testing.assert_allclose(reward_BT, [[-0.02, -0.02, 2.98]], rtol=1e-5)
  np.testing.assert_allclose(
    state['beta'], 0.2 * (1 - 0.2 * 256 / 10000), rtol=1e-6
  )
  gae, whiten = method.credit
  found = gae(CreditContext(reward_BT, traj)).value
  np.testing.assert_allclose(found, [[2.65045, 2.811, 2.98]], rtol=1e-5)
  assert type(whiten).__name__ == 'Whiten'
  clip, value = method.losses
  assert (clip.clip_low, clip.clip_high) == (0.2, 0.2)
  assert (value.coef, value.clip) == (0.1 / 2, 0.2)


@pytest.mark.parametrize('name', SIGNALS)
def test_both_methods_have_the_same_signals(name):
  """E0: tasks are equal, and only PPO has a critic and a reference."""
  grpo, ppo = built(name), built(f'ppo_{name}')
  assert grpo.task == ppo.task
  assert (grpo.rollout, grpo.iterations) == (ppo.rollout, ppo.iterations)
  assert ppo.method.reads_values and not grpo.method.reads_values
  assert ppo.model.value_head and not grpo.model.value_head


def test_signals_differ():
  tasks = [built(name).task for name in SIGNALS]
  assert len({str(task) for task in tasks}) == 3
