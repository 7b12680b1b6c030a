"""One optimizer step: exact for every loss, and safe."""

import functools
import types

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax import randomness
from rl_jax.learning import score as score_lib
from rl_jax.learning import update
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models import packing
from rl_jax.pieces import losses, weights
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.ops import groups
from rl_jax.pieces.roles import LossOut, Weight
from rl_jax.runs import stages
from rl_jax.types import TrainState

KEY = jax.random.key(5)


def clip_cov():
  """Three in ten tokens of positive covariance lose their gradient."""
  piece = weights.ClipCovDrop(
    fraction=0.3, low=0.0, high=100.0, clip_low=1.0, clip_high=1.0
  )
  return Method(
    losses=(losses.PPOClip(clip_low=1.0, clip_high=1.0),),
    weights=(piece,),
    aggregation=TokenMean(),
  )


def kl_cov():
  """Three in ten tokens pay."""
  return Method(
    losses=(losses.KLCov(coef=1.0, fraction=0.3),), aggregation=TokenMean()
  )


def get_method(toy, name):
  """A shipped method, or one of those above."""
  own = {'clip_cov': clip_cov, 'kl_cov': kl_cov}
  return own[name]() if name in own else toy.get_method(name)


@pytest.fixture(scope='module')
def scored(tiny):
  """The rollout scored by an older policy and by a reference."""
  traj, _ = jax.jit(
    lambda params, reference, traj: score_lib.score(
      Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE),
      {**params, 'policies': {'reference': reference}},
      traj,
      Method(losses=(losses.PPOClip(), losses.ValueClip())),
    )
  )(nudged(tiny, 0.2), tiny.params(1), tiny.rollout())
  return traj


def nudged(tiny, scale):
  """Weights a little away from tiny.params()."""
  return jax.tree.map(lambda x: x + scale * jnp.sin(7 * x), tiny.params())


@functools.cache
def gradient(
  tiny, method, count, *, reuse_scores=False, capacity=None, rows=None
):
  """A jitted (params, traj) -> (gradient, loss, metrics), compiled once.

  count: of microbatches. rows: of a group in each of them.
  """
  forward = Forward(
    model=tiny.CFG,
    temperature=tiny.TEMPERATURE,
    microbatches=count,
    group_rows=rows,
    capacity=capacity,
  )

  def compute(params, traj):
    *found, _ = update.minibatch_gradient(
      forward,
      params,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      method.init_state(8),
      reuse_scores=reuse_scores,
    )
    return found

  return jax.jit(compute)


@pytest.mark.parametrize(
  ('name', 'counts'),
  [
    ('grpo', (4,)),  # every token by itself, and a KL term
    pytest.param('gspo', (4,), marks=pytest.mark.slow),  # every sequence
    # Groups, a log-sum-exp: no sum over rows.
    pytest.param('disco', (4,), marks=pytest.mark.slow),
    # A ranking over the minibatch: by rows, below.
    pytest.param('clip_cov', (2,), marks=pytest.mark.slow),
    pytest.param('kl_cov', (2,), marks=pytest.mark.slow),
    pytest.param('ppo', (2,), marks=pytest.mark.slow),  # a value head
  ],
)
def test_microbatches_change_nothing(toy, tiny, scored, name, counts):
  """E1: the same loss, metrics and gradient in 1, 2 or 4 microbatches."""
  method = get_method(toy, name)
  grads, loss, metrics = gradient(tiny, method, 1)(tiny.params(), scored)
  assert optax.tree.norm(grads) > 1e-3
  for count in counts:
    got = gradient(tiny, method, count)(tiny.params(), scored)
    assert tiny.relative_gap(got[0], grads) < 1e-5, count
    np.testing.assert_allclose(got[1], loss, rtol=1e-5, atol=1e-6)
    assert got[2].keys() == metrics.keys()
    for key, value in metrics.items():
      np.testing.assert_allclose(got[2][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
  ('name', 'count', 'capacity'),
  [
    pytest.param('grpo', 4, None, marks=pytest.mark.slow),  # one pass
    ('clip_cov', 8, None),  # two passes, a ranking over the minibatch
    pytest.param('grpo', 8, 3, marks=pytest.mark.slow),  # packed
    pytest.param('gspo', 8, None, marks=pytest.mark.slow),
    pytest.param('disco', 4, None, marks=pytest.mark.slow),  # groups
    pytest.param('ppo', 8, None, marks=pytest.mark.slow),  # a value head
  ],
)
def test_microbatches_of_rows_change_nothing(
  toy, tiny, scored, name, count, capacity
):
  """E1: groups of two rows, one row of each at a time, as all at once."""
  method = get_method(toy, name)
  # A row of n tokens feeds n - 1 to the model: all fit into 3 slots.
  traj = shortened(scored, [4, 0, 1, 4, 2, 2, 1, 1])
  if capacity is None:
    traj = scored
  expected = gradient(tiny, method, 1)(tiny.params(), traj)
  assert optax.tree.norm(expected[0]) > 1e-3
  compute = gradient(tiny, method, count, rows=1, capacity=capacity)
  for unscored in (False, True):
    if unscored:
      traj = traj.replace(logp_old_BT=None, entropy_BT=None, values_BT=None)
      expected = gradient(tiny, method, 1)(tiny.params(), traj)
    got = compute(tiny.params(), traj)
    assert tiny.relative_gap(got[0], expected[0]) < 1e-5
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-5, atol=1e-6)
    assert got[2].keys() == expected[2].keys()
    for key, value in expected[2].items():
      np.testing.assert_allclose(got[2][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('count', [1, 3])
def test_rows_of_any_groups_are_a_minibatch(toy, tiny, scored, count):
  """E1: the mean of the gradients of its rows, each taken in its own group.

  A row is taken by the weights of the whole batch, where all others are 0.
  """
  rows = [5, 0, 7]
  method = toy.get_method('grpo')
  alone = gradient(tiny, method, 1)
  each = [
    alone(
      tiny.params(),
      scored.replace(weight_B=scored.weight_B * (np.arange(8) == row)),
    )
    for row in rows
  ]
  expected = jax.tree.map(lambda *x: sum(x) / len(rows), *(x[0] for x in each))
  assert optax.tree.norm(expected) > 1e-3
  taken = groups.take_rows(scored, jnp.asarray(rows))
  assert taken.group_size == 1 and taken.num_prompts == 3
  np.testing.assert_array_equal(
    taken.prompt_id_N, np.repeat(scored.prompt_id_N, 2)[np.asarray(rows)]
  )
  found = gradient(tiny, method, count)(tiny.params(), taken)
  assert tiny.relative_gap(found[0], expected) < 1e-5
  np.testing.assert_allclose(found[1], np.mean([x[1] for x in each]), rtol=1e-5)


def test_steps_on_rows_are_those_of_a_loop_by_hand(toy, tiny, scored):
  """E1: two steps of gradient descent; rows by weights of the whole batch."""
  method, optimizer = toy.get_method('grpo'), optax.sgd(0.1)
  order_KM = np.array([[5, 0], [7, 2]], np.int32)
  expected, alone = tiny.params(), gradient(tiny, method, 1)
  for rows in order_KM:
    each = [
      alone(
        expected,
        scored.replace(weight_B=scored.weight_B * (np.arange(8) == row)),
      )[0]
      for row in rows
    ]
    expected = jax.tree.map(
      lambda p, *g: p - 0.1 * sum(g) / len(g), expected, *each
    )

  @jax.jit
  def step(state, batch, group_M):
    return update.update_minibatch(
      Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE),
      state,
      batch,
      group_M,
      optimizer=optimizer,
      reuse_scores=False,
      by_row=True,
    )

  params = tiny.params()
  state = TrainState(
    step=jnp.int32(0),
    skipped=jnp.int32(0),
    params=params,
    opt_state=optimizer.init(params),
    method_state={},
  )
  batch = update.Batch(
    frozen={}, method=method.as_arrays(), traj=scored, key=KEY
  )
  for rows in order_KM:
    state, _ = step(state, batch, jnp.asarray(rows))
  moved = jax.tree.map(jnp.subtract, expected, params)
  found = jax.tree.map(jnp.subtract, state.params, params)
  assert optax.tree.norm(moved) > 1e-4
  assert tiny.relative_gap(found, moved) < 1e-5


def test_padding_and_group_order_change_nothing(toy, tiny, scored):
  """E1, for a method that ranks and draws: wider rows, groups turned round."""
  compute = gradient(tiny, clip_cov(), 2)
  grads, loss, metrics = compute(tiny.params(), scored)
  assert metrics['policy/dropped_fraction'] > 0.05  # it has drawn
  turned = toy.permute(scored, [2, 0, 3, 1], [0, 1])
  for other in (turned, tiny.widen(scored, 2, 3)):
    got, got_loss, _ = compute(tiny.params(), other)
    assert tiny.relative_gap(got, grads) < 1e-5
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5, atol=1e-6)


def shortened(traj, lengths):
  """The first tokens of every row; what comes after them is garbage."""
  length_B = np.asarray(lengths, np.int32)
  on_BT = np.arange(traj.mask_BT.shape[1])[None] < length_B[:, None]

  def keep(x):
    return None if x is None else np.asarray(x) * on_BT

  fields = ('logp_old', 'logp_ref', 'entropy', 'values', 'advantages')
  return traj.replace(
    length_B=length_B,
    mask_BT=on_BT.astype(np.float32),
    kind_BT=on_BT.astype(np.int32),
    **{f'{name}_BT': keep(getattr(traj, f'{name}_BT')) for name in fields},
  )


@pytest.mark.parametrize(
  ('name', 'count'),
  [
    ('grpo', 1),
    # One pass over microbatches, two, and a value head.
    *(
      pytest.param(name, 2, marks=pytest.mark.slow)
      for name in ('grpo', 'clip_cov', 'ppo')
    ),
    # Logits of whole groups, and hidden states.
    *(
      pytest.param(name, 1, marks=pytest.mark.slow)
      for name in ('nthr', 'tw_grpo', 'rep_exp', 'self_certainty')
    ),
  ],
)
def test_packing_changes_nothing(toy, tiny, scored, name, count):
  """E1: the same loss, metrics and gradient; a full group, an empty row."""
  method = get_method(toy, name)
  traj = shortened(scored, [5, 0, 1, 4, 2, 2, 1, 1])
  expected = gradient(tiny, method, count)(tiny.params(), traj)
  grads, loss, metrics = gradient(tiny, method, count, capacity=4)(
    tiny.params(), traj
  )
  assert optax.tree.norm(expected[0]) > 1e-3
  assert tiny.relative_gap(grads, expected[0]) < 1e-5
  np.testing.assert_allclose(loss, expected[1], rtol=1e-5, atol=1e-6)
  assert metrics.keys() == expected[2].keys()
  for key, value in metrics.items():
    np.testing.assert_allclose(value, expected[2][key], rtol=1e-4, atol=1e-5)


def test_the_host_chooses_the_program(monkeypatch):
  """By the lengths of the batch; never where the mesh splits responses."""
  monkeypatch.setattr(packing, 'SHORTEST', 2)
  found = []

  def step(state, forward, **kwargs):
    del kwargs
    found.append(forward.capacity)
    return state, {}

  for pack, lengths in ((True, [[5, 1]]), (True, [[5, 2]]), (False, [[1, 1]])):
    one = types.SimpleNamespace(
      pack=pack,
      seed=0,
      functions=types.SimpleNamespace(
        minibatches=lambda *_: np.zeros((1, 1)),
        forward=Forward(model=None),
        by_row=False,
      ),
      make_batch=lambda method, traj, states: (traj, states, {}),
      update_minibatch=step,
      replicated=jax.sharding.SingleDeviceSharding(jax.devices()[0]),
    )
    traj = types.SimpleNamespace(response_BT=np.zeros((2, 5)), num_prompts=1)
    batch = update.Batch(frozen={}, method=None, traj=traj, key=KEY)
    state = TrainState(
      step=0, params={}, opt_state=(), method_state={}, skipped=0
    )
    stages.update(one, state, batch, 0, np.asarray(lengths))
  assert found == [4, None, None]


def test_scores_of_the_same_weights_are_reused(toy, tiny, scored):
  """E1: the first minibatch after `score` needs no statistics pass."""
  params, method = nudged(tiny, 0.2), toy.get_method('grpo')
  fresh, loss, _ = gradient(tiny, method, 2)(params, scored)
  reused, same, _ = gradient(tiny, method, 2, reuse_scores=True)(params, scored)
  assert tiny.relative_gap(reused, fresh) < 1e-5
  np.testing.assert_allclose(same, loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('count', [1, 2])
def test_the_update_scores_what_was_not_scored(toy, tiny, scored, count):
  """E1: one step a rollout needs no score pass for the same gradient and the
  same metrics."""
  params, method = nudged(tiny, 0.2), toy.get_method('grpo')
  unscored = scored.replace(logp_old_BT=None, entropy_BT=None, values_BT=None)
  two, loss, metrics = gradient(tiny, method, 1)(params, scored)
  one, same, found = gradient(tiny, method, count)(params, unscored)
  assert tiny.relative_gap(one, two) < 1e-5
  np.testing.assert_allclose(same, loss, rtol=1e-5, atol=1e-6)
  gap = np.abs(scored.logp_behaviour_BT - scored.logp_old_BT)
  expected = {'rollout/logp_gap_max': (gap * scored.mask_BT).max(), **metrics}
  for name, value in expected.items():
    np.testing.assert_allclose(
      found[name], value, rtol=1e-4, atol=1e-5, err_msg=name
    )


def test_score_is_its_own_pass_where_credit_reads_the_model(toy):
  """Or where the weights move within a rollout."""
  assert not score_lib.scores_first(toy.get_method('grpo'), 1)
  assert score_lib.scores_first(toy.get_method('grpo'), 2)
  for name in ('ppo', 'seed_grpo'):
    assert score_lib.scores_first(toy.get_method(name), 1), name


@struct.dataclass(kw_only=True)
class Draw(Weight):
  """Reports the mean of its draws."""

  per_token = True

  def __call__(self, ctx):
    """Weight 1."""
    traj = ctx.traj
    draw = randomness.row_token_uniform(
      ctx.key, traj.row_id_B2, traj.mask_BT.shape[1]
    )
    return LossOut(jnp.ones_like(draw), {'draw': draw})


def make_step(tiny, method):
  """(fresh state, jitted update_minibatch that donates it)."""
  optimizer = optax.adam(1e-2)
  params = jax.tree.map(jnp.copy, tiny.params())
  state = TrainState(
    step=jnp.int32(0),
    skipped=jnp.int32(0),
    params=params,
    opt_state=optimizer.init(params),
    method_state={},
  )

  traces = []

  def step(state, traj, groups):
    traces.append(1)
    return update.update_minibatch(
      Forward(model=tiny.CFG, temperature=tiny.TEMPERATURE),
      state,
      update.Batch(frozen={}, method=method.as_arrays(), traj=traj, key=KEY),
      groups,
      optimizer=optimizer,
      reuse_scores=False,
    )

  return state, jax.jit(step, donate_argnums=0), traces


def on_host(tree):
  """Copies on the host: a view of a CPU buffer would prevent its donation."""
  return jax.device_get(jax.tree.map(jnp.copy, tree))


@pytest.fixture(scope='module')
def stepped(tiny, scored):
  """States on the host: before, after NaN, after one good step; metrics."""
  method = Method(
    losses=(losses.PPOClip(),), weights=(Draw(),), aggregation=TokenMean()
  )
  state, step, traces = make_step(tiny, method)
  groups = jnp.asarray([0, 3])
  nan = scored.replace(advantages_BT=scored.advantages_BT.at[0, 0].set(jnp.nan))
  states, metrics, donated = [on_host(state)], [], []
  for traj in (nan, scored):
    leaves = jax.tree.leaves((state.params, state.opt_state))
    state, found = step(state, traj, groups)
    donated.append(all(x.is_deleted() for x in leaves))
    states.append(on_host(state))
    metrics.append(jax.device_get(found))
  return states, metrics, donated, len(traces)


def test_a_non_finite_step_changes_nothing_and_is_counted(stepped):
  """E0: parameters and moments are those before; step and skipped move."""
  (before, after, _), (metrics, _), _, _ = stepped
  assert not np.isfinite(metrics['train/grad_norm'])
  assert metrics['train/skipped'] == 1
  assert (after.step, after.skipped) == (1, 1)
  for name in ('params', 'opt_state'):
    jax.tree.map(
      np.testing.assert_array_equal,
      getattr(after, name),
      getattr(before, name),
    )


def test_the_next_good_step_learns(stepped):
  """The skip leaves no NaN: every weight with a gradient moves."""
  (_, before, after), (_, metrics), _, _ = stepped
  assert metrics['train/skipped'] == 0 and metrics['train/grad_norm'] > 0
  assert (after.step, after.skipped) == (2, 1)
  moved = jax.tree.map(
    lambda x, y: np.abs(x - y).max(), after.params, before.params
  )
  assert all(x > 1e-4 for x in jax.tree.leaves(moved['model']))
  assert np.isfinite(optax.tree.norm(after.params))


def test_the_state_is_donated_and_traced_once(stepped):
  """No second copy of the weights; both steps share one program."""
  _, _, donated, traces = stepped
  assert donated == [True, True] and traces == 1


def test_pieces_do_not_see_the_numbers_that_drew_the_tokens(stepped, scored):
  """At step 0 too: purposes keep their streams apart."""
  _, (metrics, second), _, _ = stepped
  rows = np.array([0, 1, 6, 7])
  mask = np.asarray(scored.mask_BT * scored.weight_B[:, None])[rows]
  sampled = randomness.row_token_uniform(
    randomness.purpose_key(KEY, randomness.SAMPLING),
    scored.row_id_B2[rows],
    mask.shape[1],
  )
  assert abs(metrics['draw'] - (sampled * mask).sum() / mask.sum()) > 1e-3
  assert abs(metrics['draw'] - second['draw']) > 1e-3  # new at every step


def test_minibatch_orders_are_counters():
  """E0: a permutation of (seed, iteration, epoch) only; all of them count."""
  order = stages.minibatch_order(0, 1, 2, 16)
  assert sorted(order) == list(range(16))
  np.testing.assert_array_equal(order, stages.minibatch_order(0, 1, 2, 16))
  for other in ((1, 1, 2), (0, 2, 2), (0, 1, 3), (-1, 1, 2)):
    assert (stages.minibatch_order(*other, 16) != order).any(), other
