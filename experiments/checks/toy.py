"""Small rollouts, on which pieces and methods are checked."""

import functools
import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning import objective as objective_lib
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import name_of
from rl_jax.pieces.roles import LossContext
from rl_jax.types import Trajectories

HIDDEN_SIZE = 3
VOCAB_SIZE = 5

HEADS = ('value_heads', 'value_heads_after')  # as many as the method reads
# Statistic named in `needs` -> array of the current policy for [B, T] tokens.
# One that is not listed is uniform on [0, 1], [B, T].
STATISTICS = {
  'action_normalisers': lambda rng, B, T: rng.normal(size=(B, T, 2)),
  'action_values': lambda rng, B, T: rng.normal(size=(B, T, 3)),
  'action_values_targets': lambda rng, B, T: rng.normal(size=(B, T, 3)),
  'entropy': lambda rng, B, T: rng.uniform(0.1, 2.0, (B, T)),
  # The same for all rows of a group of 4, at every position.
  'group_divergence': lambda rng, B, T: np.repeat(
    rng.uniform(0.0, 2.0, (B // 4, T)), 4, axis=0
  ),
  'values': lambda rng, B, T: rng.normal(size=(B, T)),
  'value_heads': lambda rng, B, T: rng.normal(size=(B, T, 3)),
  'value_heads_after': lambda rng, B, T: rng.normal(size=(B, T, 3)),
  'values_after': lambda rng, B, T: rng.normal(size=(B, T)),
  'self_certainty': lambda rng, B, T: rng.uniform(0.0, 3.0, (B, T)),
  'hidden': lambda rng, B, T: rng.normal(size=(B, T, HIDDEN_SIZE)),
}

# traj.extras entries that a piece may read: name -> array, B rows, T tokens.
# Keys that a piece documents by itself, in `reads`, get values by their shape.
EXTRAS = {
  'action_values': STATISTICS['action_values'],
  'action_values_targets': STATISTICS['action_values_targets'],
  'annotator_B': lambda rng, B, T: np.repeat([0, 2], 4)[:B],
  'aspect_label_BA': lambda rng, B, T: rng.choice([-(2.0**100), 0, 1], (B, 2)),
  'chosen_B': lambda rng, B, T: np.array([1, 0, 1, -1, 0, 1, 1, 0])[:B],
  'cluster_id_B': lambda rng, B, T: np.array([3, 3, 7, -1, 5, 2, 2, 9])[:B],
  'confidence_B': lambda rng, B, T: rng.uniform(0.4, 1.0, B),
  'cut_BC': lambda rng, B, T: np.tile([[0, 1 << 30], [-1, 2]], (B // 2, 1)),
  'cut_value_BC': lambda rng, B, T: rng.uniform(size=(B, 2)),
  'difficulty_B': lambda rng, B, T: rng.uniform(0.5, 2.0, B),
  'edge_end_BK': lambda rng, B, T: np.array([[2], [3]] * (B // 2)),
  'first_call_B': lambda rng, B, T: np.array([3, -1, 0, 1, 2, 0, 4, -1])[:B],
  'forced_B': lambda rng, B, T: np.array([1, 0, 0, 0, 1, 0, 1, 0])[:B],
  'format_id_B': lambda rng, B, T: np.array([0, 1, 1, 2, 0, 0, 1, 3])[:B],
  'hidden': STATISTICS['hidden'],
  'hit_rank_B': lambda rng, B, T: np.array([1, 0, 2, 1, 0, 3, 0, 1])[:B],
  'logged_B': lambda rng, B, T: np.array([1, 1, 1, 1, 0, 0, 0, 0])[:B],
  'marginal_gain_BT': lambda rng, B, T: rng.uniform(0.0, 1.0, (B, T)),
  'message_BT': lambda rng, B, T: rng.randint(46, size=(B, T)),
  'mismatched_B': lambda rng, B, T: np.array([0, 0, 0, 1, 0, 0, 0, 0])[:B],
  'mode_B': lambda rng, B, T: np.array([0, 1, 2, 1, 0, 1, 0, 2])[:B],
  'node_BK': lambda rng, B, T: np.array([[0], [0], [1], [1]] * (B // 4)),
  'num_answers_B': lambda rng, B, T: np.array([1, 2, 3, 2, 0, 4, -1, 1])[:B],
  'opponent_B': lambda rng, B, T: np.array([0, 1, 0, 1, 1, 0, 0, 1])[:B],
  'reference_reward_NM': lambda rng, B, T: rng.normal(size=(B // 4, 3)),
  'search_pair_B': lambda rng, B, T: np.array([2, 0, -2, 0, -1, 3, -3, 1])[:B],
  'segment_start_BT': lambda rng, B, T: rng.uniform(size=(B, T)) < 0.4,
  'self_certainty': STATISTICS['self_certainty'],
  'step_score_BT': lambda rng, B, T: rng.choice([-1.0, 0.2, 0.6, 0.9], (B, T)),
  'step_label_BT': lambda rng, B, T: rng.choice([-1.0, 0.0, 0.5, 1.0], (B, T)),
  'vocab_probs': lambda rng, B, T: rng.dirichlet(np.ones(VOCAB_SIZE), (B, T)),
  'span_BT': lambda rng, B, T: rng.randint(4, size=(B, T)),
  'switch_BT': lambda rng, B, T: rng.uniform(size=(B, T)) < 0.5,
  'think_mask_BT': lambda rng, B, T: rng.uniform(size=(B, T)) < 0.7,
  'waits_B': lambda rng, B, T: np.array([0, 0, 0, 0, 0, 0, 1, 0])[:B],
  'window_start_B': lambda rng, B, T: np.array([0, 2, 0, 1, 3, 0, 2, 0])[:B],
  'value_heads_after': STATISTICS['value_heads_after'],
}


BY_SHAPE = {
  'B': lambda rng, B, T: rng.randint(4, size=B),
  'BT': lambda rng, B, T: rng.uniform(size=(B, T)),
  'NM': lambda rng, B, T: rng.uniform(size=(B // 4, 3)),
}


def method_names() -> list[str]:
  """Modules of configs/methods."""
  folder = pathlib.Path(__file__).parents[2] / 'configs' / 'methods'
  return sorted(p.stem for p in folder.glob('*.py') if p.stem != '__init__')


def get_method(name: str):
  """The method of configs/methods/NAME.py."""
  return importlib.import_module(f'configs.methods.{name}').get_method()


def trajectories(mask, *, group_size: int, **fields) -> Trajectories:
  """A record around mask_BT with neutral values; override any field."""
  mask = np.asarray(mask, np.float32)
  B, T = mask.shape
  N = B // group_size
  row = np.arange(B)
  length = np.where(mask.any(1), T - mask[:, ::-1].argmax(1), 0)
  zeros = np.zeros((B, T), np.float32)
  values = dict(
    prompt_NP=np.ones((N, 2), np.int32),
    prompt_mask_NP=np.ones((N, 2), np.float32),
    prompt_id_N=np.arange(N, dtype=np.int32),
    response_BT=np.ones((B, T), np.int32),
    kind_BT=mask.astype(np.int32),
    length_B=length.astype(np.int32),
    finished_B=np.ones(B, bool),
    row_id_B2=np.stack([row // group_size, row % group_size], 1).astype(
      np.int32
    ),
    policy_version_B=np.zeros(B, np.int32),
    mask_BT=mask,
    valid_B=np.ones(B, np.float32),
    weight_B=np.ones(B, np.float32),
    logp_behaviour_BT=zeros,
    logp_old_BT=zeros,
    reward_B=np.zeros(B, np.float32),
  )
  values.update(fields)
  values = {
    k: jax.tree.map(lambda x: jnp.asarray(_float32(x)), v)
    for k, v in values.items()
  }
  return Trajectories(group_size=group_size, **values)


def _float32(x):
  x = np.asarray(x)
  return x.astype(np.float32) if x.dtype == np.float64 else x


def own_statistics(method) -> list[str]:
  """Statistics that a method needs and that are not listed above."""
  made = {'logp', 'logp_ref', 'group_probs', *STATISTICS}
  return sorted(set(map(name_of, method.needs())) - made)


def own_keys(method) -> list[str]:
  """Keys of extras that only the pieces of a method document."""
  keys = {
    k for _, piece in method.pieces() for k in getattr(piece, 'reads', ())
  }
  for key in sorted(keys - set(EXTRAS)):
    assert key.rpartition('_')[2] in BY_SHAPE, (
      f'the key {key!r} of `reads` must end in one of _{", _".join(BY_SHAPE)}, '
      f'or EXTRAS in experiments/checks/toy.py must give it values'
    )
  return sorted(keys - set(EXTRAS))


# Components besides the outcome, of eight rows.
_REWARDS = {
  'format': [1.0, 1, 0, 1, 1, 0, 1, 0],
  'correct': [3.0, -3, 1.5, -3, 0, 3, 2, -1.5],
}


def _widened(mask, width, x):
  """Values [B, T, ...] of tokens in `width` places, with garbage where masked.

  Real token statistics are 0 there; garbage shows that they are not read.
  """
  x = np.asarray(x, np.float32)
  x = np.where(mask.reshape(mask.shape + (1,) * (x.ndim - 2)) > 0, x, -9.0)
  pad = [(0, 0), (0, width - mask.shape[1])] + [(0, 0)] * (x.ndim - 2)
  return np.pad(x, pad, constant_values=-7.0)


def _scored(rng, old):
  """Returns what the score stage writes; old: log-probs [B, T]."""
  return {
    'logp_old_BT': old,
    'logp_behaviour_BT': old,
    'logp_ref_BT': old + 0.3 * rng.normal(size=old.shape),
    'entropy_BT': rng.uniform(0.1, 2.0, old.shape),
    'values_BT': rng.normal(size=old.shape),
  }


def batch(method, *, seed: int = 0, width: int = 6):
  """(traj before make_batch, stats of a slightly newer policy).

  Two groups of four rows: lengths 1 to 6, an environment token inside row 0, a
  row that is neither valid nor trained, mixed rewards in both groups. Padding
  is filled with garbage, which a correct method never reads.
  """
  rng = np.random.RandomState(seed)
  B, T, G = 8, 6, 4
  length = np.array([6, 4, 1, 3, 5, 2, 6, 4])
  mask = (np.arange(T) < length[:, None]).astype(np.float32)
  kind = mask.astype(np.int32)
  mask[0, 2], kind[0, 2] = 0.0, 2
  old = rng.uniform(-3.0, -0.1, (B, T))
  token = _scored(rng, old)
  stats = {'logp': old + 0.3 * rng.normal(size=(B, T))}
  outputs = max(3, method.num_values)
  made = STATISTICS | {
    name: lambda rng, B, T: rng.normal(size=(B, T, outputs)) for name in HEADS
  }
  for name in sorted(map(name_of, method.needs())):
    if name in made:
      stats[name] = made[name](rng, B, T)
  if 'value_heads' in stats:
    token['values_BTH'] = made['value_heads'](rng, B, T)
  reward = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, np.nan])
  extras = {k: made.get(k, make)(rng, B, T) for k, make in EXTRAS.items()}
  for name in own_statistics(method):
    stats[name] = extras[name] = rng.uniform(size=(B, T))
  for key in own_keys(method):
    extras[key] = BY_SHAPE[key.rpartition('_')[2]](rng, B, T)
  live = np.ones(B, np.float32)
  live[7] = 0.0
  widen = functools.partial(_widened, mask, width)

  def pad(x):
    return np.pad(x, ((0, 0), (0, width - T)))

  traj = trajectories(
    pad(mask),
    group_size=G,
    kind_BT=pad(kind),
    response_BT=pad(rng.randint(VOCAB_SIZE, size=(B, T))),
    length_B=length.astype(np.int32),
    finished_B=np.array([1, 1, 1, 1, 1, 1, 0, 1], bool),
    valid_B=live,
    weight_B=live,
    reward_B=reward,
    rewards={
      'outcome': np.nan_to_num(reward),
      **{name: np.array(values) for name, values in _REWARDS.items()},
    },
    extras={
      k: jnp.asarray(widen(x) if x.shape[1:2] == (T,) else x, jnp.float32)
      for k, x in extras.items()
    },
    **{k: widen(x) for k, x in token.items()},
  )
  return traj, {k: jnp.asarray(widen(x)) for k, x in stats.items()}


def permute(tree, groups, samples):
  """Reorders groups, and the samples inside every group, of any row array."""
  groups, samples = np.asarray(groups), np.asarray(samples)
  rows = (groups[:, None] * len(samples) + samples).ravel()

  def one(x):
    if not getattr(x, 'ndim', 0):
      return x
    return x[rows] if x.shape[0] == len(rows) else x[groups]

  return jax.tree.map(one, tree)


def with_group_probs(traj):
  """extras['group_probs'] from distributions over a small vocabulary."""
  tokens = traj.response_BT.reshape(traj.num_prompts, -1)
  tokens = jnp.repeat(tokens, traj.group_size, axis=0)[:, None, :]
  probs = jnp.take_along_axis(traj.extras['vocab_probs'], tokens, axis=-1)
  return traj.replace(extras={**traj.extras, 'group_probs': probs})


def run(method, traj, stats, state, key):
  """make_batch, then the objective and its gradient in the statistics."""
  if 'group_probs' in map(name_of, method.needs()):
    traj = with_group_probs(traj)
  traj, state, batch_metrics = make_batch(method, traj, state)

  def scalar(stats):
    return objective_lib.objective(method, stats, traj, key)

  (loss, metrics), grads = jax.value_and_grad(scalar, has_aux=True)(stats)
  return {
    'loss': loss,
    'metrics': {**batch_metrics, **metrics},
    'grads': grads,
    'traj': traj,
    'state': state,
  }


def coefficient(loss, logp, **fields):
  """-d(sum of a loss piece)/d logp for literal [B, T] rows: what it pushes."""
  logp = jnp.asarray(logp, jnp.float32)
  fields.setdefault('group_size', logp.shape[0])
  mask = fields.pop('mask_BT', np.ones(logp.shape, np.float32))
  traj = trajectories(mask, **fields)
  gradient = jax.grad(
    lambda x: loss(
      LossContext({'logp': x}, traj, jax.random.key(0))
    ).value.sum()
  )
  return -gradient(logp)


def push(method, logp, *, group_size, **fields):
  """-dL/dlogp of a whole method on literal [B, T] rows.

  The old, the sampling and the reference policy are the current one unless a
  field says otherwise.
  """
  logp = np.asarray(logp, np.float32)
  mask = fields.pop('mask_BT', np.ones(logp.shape, np.float32))
  same = {
    f'logp_{name}_BT': logp * mask for name in ('old', 'behaviour', 'ref')
  }
  traj = trajectories(mask, group_size=group_size, **{**same, **fields})
  key = jax.random.key(0)
  stats = {'logp': jnp.asarray(logp)}
  state = method.init_state(traj.num_prompts)
  result = run(method.as_arrays(), traj, stats, state, key)
  return -np.asarray(result['grads']['logp'])
