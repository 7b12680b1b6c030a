"""Responses that are written over several iterations, a window at a time.

Every iteration each unfinished row gets rollout.window_tokens tokens at most;
the next one continues from there, with the weights of then. A group whose rows
have all ended makes room for the next prompt, so the batch has the same number
of groups always.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import checks
from rl_jax.method import Method
from rl_jax.rollouts.collect import Collector
from rl_jax.rollouts.rounds import Collected, Draw, Round
from rl_jax.runtime import processes
from rl_jax.types import PAD, POLICY, Array, GroupSummary, Trajectories

_OF_GROUPS = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')
_OF_ROWS = (
  *('response_BT', 'kind_BT', 'logp_behaviour_BT', 'length_B', 'finished_B'),
  'row_id_B2',
)


class WindowSelector:
  """A HostSelector and the rows that wait: what a checkpoint holds of both.

  rows: NumPy arrays by field of Trajectories; index_N are positions in the
  prompt set, open_B rows that continue, version_BT the optimizer step of the
  weights that wrote each token.
  """

  def __init__(self, selector: Any, rows: dict[str, np.ndarray]):
    self.prompts, self.rows = selector, rows

  def select(self, count: int) -> np.ndarray:
    """See PromptSelector; rows that continue keep their places."""
    return self.prompts.select(count)

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """See PromptSelector."""
    self.prompts.observe(ids, summary)

  @property
  def memory(self) -> Any:
    """See PromptSelector."""
    return self.prompts.memory

  @property
  def state(self) -> dict[str, Any]:
    """The states of the selector and of the rows."""
    return {'prompts': self.prompts.state, 'rows': self.rows}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self.prompts.state = value['prompts']

    def read(x):
      return np.array(jax.device_get(x))

    self.rows = {name: read(x) for name, x in value['rows'].items()}


class WindowedCollector(Collector):
  """A Collector whose rows continue in the next iteration; one round each.

  Trained are the tokens of this window; of rows that end in it mask_BT also has
  those of earlier windows, for the value head: extras['window_start_B'] says
  where the window begins (weights.CurrentWindow). Rows of a group that ended in
  an earlier iteration weigh nothing. Rows that wait are not verified and have
  reward 0. Tokens of earlier windows are fed to the
  model again, one at a time.
  Source: "Truncated Proximal Policy Optimization", from the abstract and
  digests; that a group leaves as a whole is a choice of this code (with
  rollout.group_size = 1 it is the paper's slot).
  """

  def __init__(self, rollout: Any, *, selector: Any, **parts: Any):
    self.windows = WindowSelector(selector, no_rows(rollout))
    super().__init__(rollout, selector=self.windows, **parts)

  def collect(self, draw: Draw) -> Collected:
    """See Collector.collect: one round; lengths are of whole responses."""
    self._begin(draw.first_serial)
    rows = self.windows.rows
    given_B, open_B = rows['length_B'], rows['open_B']
    examples = [self.prompts.example(i) for i in rows['index_N']]
    traj = self._trajectories(draw.policy_version)
    weights = draw.weights
    self._judges.begin(weights)
    traj = self.runner.play(self.engine, weights, traj, self.key, examples)
    learned = self._learned.score(traj)
    self._keep(traj, draw.policy_version)
    waits_B = self.windows.rows['open_B']
    due_B = _due(open_B, waits_B, self._rollout.group_size)
    done, components = self.judge(
      traj, examples, rows['index_N'], given_B, due_B
    )
    pairs = zip(waits_B, components, strict=True)
    known = [self._nothing(c) if waits else c for waits, c in pairs]
    traj = self._with_rewards(traj, known, learned)
    rows = self.windows.rows
    arrays = given_B, open_B, rows['open_B'], rows['version_BT']
    traj = self.jitted(in_window)(traj, *processes.put(arrays, self.replicated))
    done = self._observed(done, components, open_B)
    traj, metrics = self._score(draw.params, traj, draw.method)
    lengths = rows['length_B'].reshape(done.reward_NG.shape)
    return Collected(traj, metrics, [done], lengths)

  def _nothing(self, components: dict | None) -> dict[str, float]:
    """0 by the names of components and of those that have a weight."""
    return dict.fromkeys({**self._weights, **(components or {})}, 0.0)

  def _begin(self, first_serial: int) -> None:
    """The next prompts in the places of groups that are over."""
    rows = {name: x.copy() for name, x in self.windows.rows.items()}
    G = self._rollout.group_size
    (free,) = np.nonzero(~rows['open_B'].reshape(-1, G).any(axis=1))
    if not len(free):
      return
    indices = self.windows.prompts.select(len(free))
    _, prompt, mask, ids = self.prompts.batch(indices)
    for name in ('prompt_NP', 'prompt_mask_NP'):
      rows[name][free] = 0
    width = prompt.shape[1]
    rows['prompt_NP'][free, -width:] = prompt
    rows['prompt_mask_NP'][free, -width:] = mask
    rows['prompt_id_N'][free], rows['index_N'][free] = ids, indices
    row = (free[:, None] * G + np.arange(G)).ravel()
    for name in (*_OF_ROWS, 'version_BT'):
      rows[name][row] = 0
    sample = np.tile(np.arange(G), len(free))
    rows['row_id_B2'][row] = np.stack(
      [first_serial + np.repeat(free, G), sample], axis=1
    )
    rows['open_B'][row] = True
    self.windows.rows = rows

  def _trajectories(self, policy_version: int) -> Trajectories:
    """The rows on the mesh; those that are over have ended."""
    rows = self.windows.rows
    fields: dict[str, Any] = {
      name: rows[name] for name in (*_OF_GROUPS, *_OF_ROWS)
    }
    B, T = rows['response_BT'].shape
    fields |= {
      'policy_version_B': np.full(B, policy_version, np.int32),
      'mask_BT': np.zeros((B, T), np.float32),
      'valid_B': np.ones(B, np.float32),
      'weight_B': np.ones(B, np.float32),
    }
    traj = Trajectories(group_size=self._rollout.group_size, **fields)
    return processes.put(traj, self.rows)

  def _keep(self, traj: Trajectories, policy_version: int) -> None:
    """Reads what the rows hold now."""
    before = self.windows.rows
    read = processes.read(checks.values(traj, _OF_ROWS))
    rows = {**before, **{name: np.array(x) for name, x in read.items()}}
    new_BT = (rows['kind_BT'] != PAD) & (before['kind_BT'] == PAD)
    limit = rows['response_BT'].shape[1]
    ended_B = rows['finished_B'] | (rows['length_B'] >= limit)
    rows['open_B'] = before['open_B'] & ~ended_B
    rows['version_BT'] = np.where(
      new_BT, np.int32(policy_version), before['version_BT']
    )
    self.windows.rows = rows

  def _observed(self, done: Round, components: list, open_B: Any) -> Round:
    """Tells the selector of groups that are over; rewards of rows that have
    ended in this window."""
    shape = done.reward_NG.shape
    waits_NG = self.windows.rows['open_B'].reshape(shape)
    (over,) = np.nonzero(~waits_NG.any(axis=1))
    if len(over):
      summary = self._summary(done, components)
      self.windows.prompts.observe(
        done.indices[over], jax.tree.map(lambda x: x[over], summary)
      )
    ended_NG = open_B.reshape(shape) & ~waits_NG
    return dataclasses.replace(
      done,
      reward_NG=np.where(ended_NG, done.reward_NG, np.float32(np.nan)),
      metrics={**done.metrics, 'rollout/waiting_fraction': waits_NG.mean()},
    )


def _due(
  open_B: np.ndarray, waits_B: np.ndarray, group_size: int
) -> np.ndarray:
  """Rows to verify: those that ended in this window, and again those of groups
  that are over, for the selector. One at least, whose reward names components.
  """
  over_N = ~waits_B.reshape(-1, group_size).any(axis=1)
  due_B = (open_B & ~waits_B) | np.repeat(over_N, group_size)
  due_B[0] |= not due_B.any()
  return due_B


def check(rollout: Any, method: Method) -> None:
  """Raises ValueError if responses of several iterations cannot be."""
  window = rollout.window_tokens
  if window is None:
    return
  if window > rollout.max_response_tokens:
    raise ValueError(
      f'rollout.window_tokens = {window} is more than '
      f'rollout.max_response_tokens = {rollout.max_response_tokens}'
    )
  excluded = {
    'rollout.turns': rollout.turns,
    'rollout.recorded_prompts': rollout.recorded_prompts or None,
    'method.group_filter': method.group_filter,
    'method.rollout': method.rollout,
  }
  for name, value in excluded.items():
    if value is not None:
      raise ValueError(
        f'rollout.window_tokens = {window} with {name}: rows that wait for '
        'their next window are plain samples; set one of them to null'
      )


def no_rows(rollout: Any) -> dict[str, np.ndarray]:
  """Returns what WindowSelector.rows are before the first iteration: all are
  over.
  """
  N, T = rollout.num_prompts, rollout.max_response_tokens
  B, P = N * rollout.group_size, rollout.max_prompt_tokens
  return {
    'prompt_NP': np.zeros((N, P), np.int32),
    'prompt_mask_NP': np.zeros((N, P), np.float32),
    'prompt_id_N': np.zeros(N, np.int32),
    'index_N': np.zeros(N, np.int32),
    'response_BT': np.zeros((B, T), np.int32),
    'kind_BT': np.zeros((B, T), np.int32),
    'logp_behaviour_BT': np.zeros((B, T), np.float32),
    'version_BT': np.zeros((B, T), np.int32),
    'length_B': np.zeros(B, np.int32),
    'finished_B': np.zeros(B, bool),
    'open_B': np.zeros(B, bool),
    'row_id_B2': np.zeros((B, 2), np.int32),
  }


def in_window(
  traj: Trajectories,
  given_B: Array,
  open_B: Array,
  waits_B: Array,
  version_BT: Array,
) -> Trajectories:
  """Verified rows with the mask, weights and extras of this window.

  given_B: tokens of earlier windows. open_B: rows that were continuing.
  waits_B: those that still are, whose beginnings reward models have scored,
  too.
  """

  def ended(reward_B):
    return jnp.where(waits_B, 0.0, reward_B)

  position_1T = jnp.arange(traj.mask_BT.shape[1])[None]
  new_BT = position_1T >= given_B[:, None]
  trained_BT = (traj.kind_BT == POLICY) & open_B[:, None]
  trained_BT &= new_BT | ~waits_B[:, None]
  live_B = open_B.astype(jnp.float32)
  return traj.replace(
    mask_BT=trained_BT.astype(jnp.float32),
    logp_behaviour_BT=jnp.where(trained_BT, traj.logp_behaviour_BT, 0.0),
    valid_B=traj.valid_B * live_B,
    weight_B=traj.weight_B * live_B,
    rewards={name: ended(x_B) for name, x_B in traj.rewards.items()},
    reward_B=ended(traj.reward_B),
    extras={
      **traj.extras,
      'window_start_B': given_B.astype(jnp.float32),
      'waits_B': waits_B.astype(jnp.float32),
      'version_BT': version_BT,
    },
  )
