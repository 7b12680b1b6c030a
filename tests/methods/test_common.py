"""What every method of configs/methods must satisfy, on toy arrays.

A new module in configs/methods is tested without adding anything here.
"""

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.learning.batch import make_batch
from rl_jax.learning.objective import is_per_group, is_per_token
from rl_jax.learning.score import scores_first
from rl_jax.method import validate
from rl_jax.runtime.mesh import MeshConfig, make_mesh

FOLDER = pathlib.Path(__file__).parents[2] / 'configs' / 'methods'
NAMES = sorted(p.stem for p in FOLDER.glob('*.py') if p.stem != '__init__')
NUM_PROMPTS = 5
KEY = 7


class Case:
  """A method with its toy iteration.

  Run op by op: the operations are compiled once for all methods, which is far
  cheaper than compiling every method as a whole.
  """

  def __init__(self, toy, name):
    self.toy = toy
    self.method = toy.get_method(name)
    self.traj, self.stats = toy.batch(self.method)
    self.state = self.method.init_state(NUM_PROMPTS)

  def arguments(self, **replaced):
    """The arguments of toy.run, any of them replaced."""
    arguments = {
      'method': self.method.as_arrays(),
      'traj': self.traj,
      'stats': self.stats,
      'state': self.state,
      'key': jax.random.key(KEY),
    }
    return {**arguments, **replaced}

  def run(self, **replaced):
    """The toy iteration, as NumPy arrays."""
    return jax.device_get(self.toy.run(**self.arguments(**replaced)))

  @functools.cached_property
  def result(self):
    """The iteration on the standard toy batch."""
    return self.run()


@pytest.fixture(scope='module')
def cases(toy):
  """name -> Case, made on first use and kept for the whole table."""
  return functools.cache(lambda name: Case(toy, name))


@pytest.fixture(scope='module', params=NAMES)
def case(cases, request):
  """Every method in turn; all tests of one follow each other.

  So its programs are still there: JAX keeps the last 2,048.
  """
  return cases(request.param)


def pieces_and_fields(method):
  """(path, field, value) of every dataclass field of every piece."""
  for path, piece in method.pieces():
    for field in dataclasses.fields(piece):
      yield path, field, getattr(piece, field.name)


def assert_close(actual, expected, scale=1.0):
  """Tier E1: rtol 1e-5, relative to the largest entry where entries cancel."""
  actual, expected = np.asarray(actual), np.asarray(expected)
  size = max(float(np.abs(expected).max(initial=0.0)), 1e-3) * scale
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * size)


def assert_same_loss(actual, expected):
  """Tier E1; 1e-7 is float32's rounding of the terms, which may cancel."""
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


def test_builds_and_fits_its_needs(case):
  """The defaults pass their own checks."""
  method = case.method
  validate(
    method,
    group_size=4,
    has_value_head=method.reads_values,
    num_values=method.num_values,
  )


def test_every_piece_declares_its_role(case):
  """Pieces say what they are, and losses whether they stay within a token."""
  for path, piece in case.method.pieces():
    assert isinstance(piece.role, str), path
  for piece in (*case.method.losses, *case.method.weights):
    assert isinstance(piece.per_token, bool)


def test_exactly_the_float_fields_are_leaves(case):
  """A float can change without recompiling; everything else is static."""
  for path, field, value in pieces_and_fields(case.method):
    is_leaf = field.metadata.get('pytree_node', True)
    if isinstance(value, float):
      assert is_leaf, f'{path}.{field.name} must not be static'
    elif isinstance(value, (bool, int, str, tuple)) and value != ():
      assert not is_leaf, f'{path}.{field.name} must be static()'
  leaves = jax.tree.leaves(case.method)
  assert all(isinstance(leaf, float) for leaf in leaves)
  assert all(
    x.dtype == jnp.float32 for x in jax.tree.leaves(case.method.as_arrays())
  )


def test_new_values_do_not_retrace(case):
  """Other hyperparameters make the same program, so leaves are never branched
  on and jit compiles once."""
  traces = []

  def traced(**arguments):
    traces.append(1)
    return case.toy.run(**arguments)

  run = jax.jit(traced)
  run.trace(**case.arguments())
  method = jax.tree.map(lambda x: x * 0.99, case.method.as_arrays())
  run.trace(**case.arguments(method=method))
  assert len(traces) == 1


@pytest.mark.slow
def test_compiled_equals_op_by_op(case):
  """E1: loss and gradients with and without jit."""
  compiled = jax.device_get(jax.jit(case.toy.run)(**case.arguments()))
  assert_same_loss(compiled['loss'], case.result['loss'])
  jax.tree.map(assert_close, compiled['grads'], case.result['grads'])


def test_loss_gradients_and_metrics_are_finite(case):
  """Also where padding holds garbage and one reward is NaN."""
  result = case.result
  assert np.isfinite(result['loss'])
  for name, value in result['metrics'].items():
    assert np.ndim(value) == 0 and np.isfinite(value), name
  for name, grad in result['grads'].items():
    assert np.isfinite(grad).all(), name


def test_finite_at_the_old_policy(case):
  """Ratio 1 is where max, clip and |x| have kinks; E0 for repeated runs."""
  stats = {**case.stats, 'logp': case.traj.logp_old_BT}
  result = case.run(stats=stats)
  assert np.isfinite(result['loss'])
  for name, grad in result['grads'].items():
    assert np.isfinite(grad).all(), name


def test_something_is_learned(case):
  """Some token has a gradient: the zeros below are not trivial."""
  grads = case.result['grads']
  assert max(np.abs(grads[name]).max() for name in grads) > 0


def test_no_gradient_on_masked_tokens_and_dropped_rows(case):
  """Exactly zero, not merely small."""
  traj = case.result['traj']
  trained = (traj.mask_BT > 0) & (traj.weight_B != 0)[:, None]
  for name, grad in case.result['grads'].items():
    assert (grad[~trained] == 0).all(), name


def test_per_token_methods_look_at_one_token_at_a_time(case):
  """E1: what they say decides whether microbatches need a pass of their own."""
  if not is_per_token(case.method):
    return
  moved = {
    name: x.at[:, ::2].multiply(1.25) if x.ndim == 2 else x
    for name, x in case.stats.items()
  }
  found = case.run(stats=moved)['grads']
  for name, grad in case.result['grads'].items():
    assert_close(found[name][:, 1::2], grad[:, 1::2])


def test_per_group_methods_look_at_one_group_at_a_time(case):
  """E1: the same for groups, which microbatches never split."""
  if not is_per_group(case.method):
    return
  moved = {name: x.at[4:].multiply(1.25) for name, x in case.stats.items()}
  found = case.run(stats=moved)['grads']
  for name, grad in case.result['grads'].items():
    assert_close(found[name][:4], grad[:4])


def test_credit_is_zero_where_nothing_is_trained(case):
  """Masked tokens and invalid rows carry no advantage and no target."""
  traj = case.result['traj']
  live = (traj.mask_BT > 0) & (traj.valid_B > 0)[:, None]
  for credit in (traj.advantages_BT, traj.returns_BT):
    if credit is not None:
      assert (credit[~live] == 0).all()


def test_unscored_rollouts_suffice_where_no_piece_declares_more(case):
  """E0: credit that reads the old policy says so, or the update would skip the
  pass that scores it."""
  if scores_first(case.method, 1):
    return
  unscored = case.traj.replace(
    logp_old_BT=None, entropy_BT=None, values_BT=None
  )
  traj, _, _ = make_batch(case.arguments()['method'], unscored, case.state)
  np.testing.assert_array_equal(
    traj.advantages_BT, case.result['traj'].advantages_BT
  )


def test_independent_of_the_padded_width(case, toy):
  """E1: two more columns of garbage change no loss and no gradient."""
  traj, stats = toy.batch(case.method, width=8)
  wide = case.run(traj=traj, stats=stats)
  assert_same_loss(wide['loss'], case.result['loss'])
  for name, grad in case.result['grads'].items():
    assert_close(wide['grads'][name][:, :6], grad)
    assert (wide['grads'][name][:, 6:] == 0).all()


def test_independent_of_the_order_of_rows_and_groups(case, toy):
  """E1: permuting the batch permutes the gradient."""
  order = ([1, 0], [2, 0, 3, 1])
  moved = case.run(
    traj=toy.permute(case.traj, *order), stats=toy.permute(case.stats, *order)
  )
  assert_same_loss(moved['loss'], case.result['loss'])
  for name, grad in case.result['grads'].items():
    assert_close(moved['grads'][name], toy.permute(grad, *order))


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


def test_state_survives_a_round_trip(case):
  """E0: two steps equal one step, the state through host arrays, one step."""
  assert jax.tree.structure(case.result['state']) == jax.tree.structure(
    case.state
  )
  if not jax.tree.leaves(case.state):
    return  # the same call three times
  once = case.toy.run(**case.arguments())['state']
  direct = case.run(state=once)
  saved = jax.tree.map(lambda x: jnp.asarray(np.array(x)), once)
  resumed = case.run(state=saved)
  jax.tree.map(np.testing.assert_array_equal, direct, resumed)


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
