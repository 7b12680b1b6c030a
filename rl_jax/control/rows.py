"""Histories as rows of the library: every loss of a method trains on them.

A step is one token, its action, and `inputs_BTF` holds what was seen before:

  token   0       a_0     a_1     ...
  input   s_0     r_0 s_1 r_1 s_2 ...
  kind    ENV     POLICY  POLICY  ...

The vocabulary is the actions, so log-probabilities and entropies are those of
actions. The first token is the start, and the prompt is one token that says
nothing. A turn is a step (`turn_BT`), so credit by turns reads its rewards.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.control.base import Discrete, World
from rl_jax.control.unroll import Steps
from rl_jax.types import Array, Trajectories, Turns

# Features of an input after those of observation and last action: reward,
# whether the episode has ended, whether nothing came before.
EXTRA = 3


def num_features(world: World) -> int:
  """Features of the input of a step."""
  return world.observations.width + num_actions(world) + EXTRA


def features(
  world: World, obs: Array, action: Array, reward: Array, flags: Array
) -> Array:
  """The input of a step, [..., F]: what an actor sees before it acts.

  action, reward: of the step before. flags: [..., 2], whether that step was the
  last of its episode, and whether there was none, which hides the action. The
  action is a feature, too: embeddings of tokens begin small, and what a reward
  means depends on the action.
  """
  seen = world.observations.features(obs).astype(jnp.float32)
  taken = jax.nn.one_hot(action, num_actions(world))
  taken = jnp.where(flags[..., 1:] > 0, 0.0, taken)
  rest = (reward[..., None], flags.astype(jnp.float32))
  return jnp.concatenate([seen, taken, *rest], axis=-1)


def num_actions(world: World) -> int:
  """The vocabulary of rows. Raises: ValueError for actions that are real."""
  if not isinstance(world.actions, Discrete):
    raise ValueError(
      f'{type(world).__name__}.actions = {world.actions}: rows of tokens need '
      'Discrete actions'
    )
  return world.actions.n


def joined(parts: Sequence[Steps]) -> Steps:
  """Histories [B, T, ...] of unequal T as one, invalid after their end.

  Raises: ValueError that names a field which differs in more than rows and T.
  """
  if not parts:
    raise ValueError('rows.joined: expected at least one history')
  for part in parts:
    check_steps(part)
    for name, x in _fields(part).items():
      form, first = (_form(y) for y in (x, _fields(parts[0])[name]))
      if form != first:
        raise ValueError(
          f'rows.joined: Steps.{name} of a step is {form}, and that of the '
          f'first history {first}'
        )
  longest = max(part.reward.shape[1] for part in parts)

  def padded(x: Array):
    rest = ((0, 0),) * (x.ndim - 2)
    return jnp.pad(x, ((0, 0), (0, longest - x.shape[1]), *rest))

  parts = [jax.tree.map(padded, part) for part in parts]
  return jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def check_steps(steps: Steps) -> None:
  """Raises ValueError for a field whose rows or lengths differ from others."""
  want = steps.reward.shape
  if len(want) != 2:
    raise ValueError(f'Steps.reward has shape {want}, expected [B, T]')
  for name, x in _fields(steps).items():
    if x is not None and x.shape[:2] != want:
      raise ValueError(
        f'Steps.{name} has shape {x.shape}, but Steps.reward has {want}: rows '
        'of unequal length are joined by rows.joined'
      )


def _fields(steps: Steps) -> dict[str, Array | None]:
  return {name: vars(steps)[name] for name in steps.__annotations__}


def _form(x: Array | None) -> str:
  """The type and shape of one step."""
  return 'None' if x is None else f'{x.dtype}{list(x.shape[2:])}'


def _check_rows(B: int, group_size: int, weight_B: Array | None) -> None:
  """Raises ValueError for groups or weights of other rows than B."""
  if group_size < 1 or B % group_size:
    raise ValueError(
      f'rows.trajectories.group_size = {group_size} does not divide {B} rows'
    )
  if weight_B is not None and jnp.shape(weight_B) != (B,):
    raise ValueError(
      f'rows.trajectories.weight_B has shape {jnp.shape(weight_B)}, but there '
      f'are {B} rows'
    )


def trajectories(
  world: World,
  steps: Steps,
  *,
  group_size: int = 1,
  optimal: bool = False,
  weight_B: Array | None = None,
) -> Trajectories:
  """Rows [B, T + 1] of histories [B, T].

  group_size: adjacent rows of one task. optimal: what is scored is the optimal
  action of every state, in place of that which was taken (DPT). weight_B: of
  the rows in the loss. Rows count only up to their first step that is not
  valid, and not at all if that is the first one.

  Raises: ValueError for actions that are not Discrete, and fields that differ.
  """
  num_actions(world)
  check_steps(steps)
  (B, T), count_B = steps.reward.shape, steps.valid.sum(axis=1)
  _check_rows(B, group_size, weight_B)
  steps = steps.replace(
    action=jnp.where(steps.valid > 0, steps.action, 0),
    reward=jnp.where(steps.valid > 0, steps.reward, 0.0),
  )
  length_B = (count_B + 1).astype(jnp.int32)
  on_BT = jnp.arange(T + 1)[None] < length_B[:, None]
  kind_BT = _kinds(on_BT)
  mask_BT = (kind_BT == types.POLICY).astype(jnp.float32)
  target_BT = None
  if optimal:
    mask_BT, target_BT = _optimal(steps, mask_BT)
  some_B = (count_B > 0).astype(jnp.float32)
  index_B = jnp.arange(B, dtype=jnp.int32)
  N = B // group_size
  return Trajectories(
    prompt_NP=jnp.zeros((N, 1), jnp.int32),
    prompt_mask_NP=jnp.ones((N, 1)),
    prompt_id_N=jnp.arange(N, dtype=jnp.int32),
    group_size=group_size,
    response_BT=jnp.where(on_BT, _before(steps.action), 0).astype(jnp.int32),
    kind_BT=kind_BT,
    length_B=length_B,
    finished_B=jnp.ones(B, bool),
    row_id_B2=jnp.stack([index_B // group_size, index_B % group_size], axis=1),
    policy_version_B=jnp.zeros(B, jnp.int32),
    mask_BT=mask_BT,
    valid_B=some_B,
    weight_B=some_B if weight_B is None else some_B * weight_B,
    logp_behaviour_BT=jnp.zeros((B, T + 1)),
    rewards={'return': steps.reward.sum(axis=1)},
    reward_B=steps.reward.sum(axis=1),
    turn_BT=_turns(on_BT),
    turns=_rewards_of_turns(steps.reward),
    target_BT=target_BT,
    inputs_BTF=jnp.where(on_BT[..., None], _inputs(world, steps), 0.0),
  )


def _kinds(on_BT: Array) -> Array:
  """Kinds of tokens: the first is of the world, the others of the policy."""
  first_1T = (jnp.arange(on_BT.shape[1]) == 0)[None]
  kind_BT = jnp.where(first_1T, types.ENVIRONMENT, types.POLICY)
  return jnp.where(on_BT, kind_BT, types.PAD).astype(jnp.int32)


def _optimal(steps: Steps, mask_BT: Array) -> tuple[Array, Array]:
  """(mask, targets): unknown optimal actions, -1, are not trained."""
  optimal_BT = _before(steps.optimal)
  mask_BT = mask_BT * (optimal_BT >= 0)
  return mask_BT, jnp.maximum(optimal_BT, 0) * (mask_BT > 0)


def _before(x_BT: Array) -> Array:
  """Moves what is of a step to the place after it."""
  return jnp.pad(x_BT, ((0, 0), (1, 0)))


def _inputs(world: World, steps: Steps) -> Array:
  """Returns what is read at every place, [B, T + 1, F]."""
  B, T = steps.reward.shape
  # The last token is fed to nothing: its observation is not needed.
  obs = jnp.concatenate([steps.obs, steps.obs[:, -1:]], axis=1)
  start_BT = jnp.broadcast_to(jnp.arange(T + 1)[None] == 0, (B, T + 1))
  flags_BT2 = jnp.stack([_before(steps.last), start_BT], axis=-1)
  return features(
    world, obs, _before(steps.action), _before(steps.reward), flags_BT2
  )


def _turns(on_BT: Array) -> Array:
  """Numbers of steps; the start is of the first one."""
  place_1T = jnp.arange(on_BT.shape[1], dtype=jnp.int32)[None]
  return jnp.where(on_BT, jnp.maximum(place_1T - 1, 0), -1)


def _rewards_of_turns(reward_BK: Array) -> Turns:
  """Each step is a turn; nothing is known of states and calls."""
  none_BK = jnp.full(reward_BK.shape, -1, jnp.int32)
  return Turns(
    reward_BK=reward_BK,
    state_BK=none_BK,
    action_BK=none_BK,
    calls_BK=jnp.zeros(reward_BK.shape, jnp.int32),
  )
