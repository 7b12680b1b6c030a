"""Every method of configs/methods satisfies these tests, on toy arrays.

A new module in configs/methods is tested without adding anything here.
"""

import functools
import pathlib

import jax
import numpy as np
import pytest

from experiments.checks.common import (
  CHECKS,
  Case,
  assert_close,
  assert_same_loss,
)
from rl_jax.runtime.mesh import MeshConfig, make_mesh

FOLDER = pathlib.Path(__file__).parents[2] / 'configs' / 'methods'
NAMES = sorted(p.stem for p in FOLDER.glob('*.py') if p.stem != '__init__')


@pytest.fixture(scope='module')
def cases(toy):
  """name -> Case, made on first use and kept for the whole table."""
  return functools.cache(lambda name: Case(toy.get_method(name)))


@pytest.fixture(scope='module', params=NAMES)
def case(cases, request):
  """Every method in turn; all tests of one follow each other.

  So its programs are still there: JAX keeps the last 2,048.
  """
  return cases(request.param)


@pytest.mark.parametrize('check', CHECKS)
def test_common_table(check, case):
  """Every line of experiments/checks/common.py, on every method."""
  CHECKS[check](case)


def test_every_piece_declares_its_role(case):
  """Pieces say what they are, and losses whether they stay within a token."""
  for path, piece in case.method.pieces():
    assert isinstance(piece.role, str), path
  for piece in (*case.method.losses, *case.method.weights):
    assert isinstance(piece.per_token, bool)


@pytest.mark.slow
def test_compiled_equals_op_by_op(case, toy):
  """E1: loss and gradients with and without jit."""
  compiled = jax.device_get(jax.jit(toy.run)(**case.arguments()))
  assert_same_loss(compiled['loss'], case.result['loss'])
  jax.tree.map(assert_close, compiled['grads'], case.result['grads'])


@pytest.mark.slow
@pytest.mark.devices
def test_rows_on_two_devices_equal_one(case, toy):
  """E1: whole groups on each of two devices, the method replicated."""
  mesh = make_mesh(MeshConfig(data=2), jax.devices()[:2])
  rows = jax.NamedSharding(mesh, jax.P('data'))
  split = jax.device_put((case.traj, case.stats), rows)
  rest = case.arguments()
  rest = {k: rest[k] for k in ('method', 'state', 'key')}
  rest = jax.device_put(rest, jax.NamedSharding(mesh, jax.P()))
  got = jax.jit(toy.run)(traj=split[0], stats=split[1], **rest)
  assert_same_loss(got['loss'], case.result['loss'])
  jax.tree.map(assert_close, jax.device_get(got['grads']), case.result['grads'])


# Closed forms of -dL/dlogp per unit of aggregation weight, written down here
# without the library: f(A, ratio, log-ratio to the reference, trained mask).


def _ppo(low, high):
  def rule(adv, ratio, to_ref, logp, trained):
    del to_ref, logp, trained
    cut = ((adv > 0) & (ratio > 1 + high)) | ((adv < 0) & (ratio < 1 - low))
    return np.where(cut, 0.0, adv * ratio)

  return rule


def _score(adv, ratio, to_ref, logp, trained):
  del ratio, to_ref, logp, trained
  return adv


def _grpo(adv, ratio, to_ref, logp, trained):
  k3 = 1e-3 * np.expm1(to_ref)
  return _ppo(0.2, 0.2)(adv, ratio, to_ref, logp, trained) + k3


def _kl_cov(adv, ratio, to_ref, logp, trained):
  del to_ref
  cov = (adv - adv[trained].mean()) * (logp - logp[trained].mean())
  first = cov == cov[trained].max()  # 0.2% of 24 tokens: one token
  return adv * ratio - np.where(first, np.sign(np.log(ratio)), 0.0)


def _token_mean(mask, rows):
  return mask / mask[rows].sum()


def _row_sum(mask, rows):
  return mask / rows.sum()


def _row_mean(mask, rows):
  return mask / mask.sum(1, keepdims=True) / rows.sum()


CLOSED_FORMS = {
  'reinforce': (_score, _row_sum),
  'rloo': (_score, _row_sum),
  'grpo': (_grpo, _row_mean),
  'dr_grpo': (_ppo(0.2, 0.2), lambda m, rows: _row_sum(m, rows) / 1024),
  'dapo': (_ppo(0.2, 0.28), _token_mean),
  'ppo': (_ppo(0.2, 0.2), _token_mean),
  'kl_cov': (_kl_cov, _token_mean),
}


@pytest.mark.parametrize('name', sorted(CLOSED_FORMS))
def test_gradient_is_the_coefficient(cases, name):
  """E1: -dL/dlogp equals the method's closed form, token by token."""
  case = cases(name)
  rule, aggregation = CLOSED_FORMS[name]
  traj = case.result['traj']
  rows = (traj.weight_B != 0) & traj.mask_BT.any(1)
  trained = (traj.mask_BT > 0) & rows[:, None]
  logp = np.where(trained, np.asarray(case.stats['logp'], np.float64), 0.0)
  ratio = np.exp(np.where(trained, logp - traj.logp_old_BT, 0.0))
  to_ref = np.where(trained, traj.logp_ref_BT - logp, 0.0)
  adv = np.asarray(traj.advantages_BT, np.float64)
  weight = aggregation(np.asarray(traj.mask_BT, np.float64), rows)
  expected = np.where(
    trained, rule(adv, ratio, to_ref, logp, trained) * weight, 0.0
  )
  np.testing.assert_allclose(
    -case.result['grads']['logp'], expected, rtol=1e-5, atol=1e-7
  )
