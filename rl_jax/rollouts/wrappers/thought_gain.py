"""RLP: thoughts are judged by the text that follows them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops.masking import zero_masked
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.wrappers import single_responses
from rl_jax.types import PAD, POLICY, Array, Trajectories

THINK = 'think_mask_BT'


@piece
class ThoughtGain(RolloutWrapper):
  """Rows become thoughts, and learn how likely a known text is after them.

  The text is the answer of the example, x tokens long. A thought ends where
  think_mask_BT does; a response without one counts as a whole, and what leaves
  no room for the text is cut. Only thoughts are trained: no loss is on the
  text. Fills extras 'target_logp_B', log pi(text | prompt, thought), and
  'plain_logp_B', log pi_ref(text | prompt). It costs two forward passes.
  Source: "RLP: Reinforcement as a Pretraining Objective"; NVlabs/RLP README.
  """

  reads_rewards = True
  scores = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError without marks of thoughts, and for episodes."""
    task = context.task
    if task is not None and not task.supports('row_inputs_device'):
      raise ValueError(
        'method.rollout: ThoughtGain needs a task that marks thoughts '
        f'({THINK}), but {type(task).__name__} has no method '
        '`row_inputs_device`: tasks.TextSpans marks them by texts'
      )
    single_responses.refuse(
      self, 'reads single responses', context.rollout, 'turns'
    )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(thoughts with both log-probabilities, no further rounds).

    Raises: ValueError where the task does not mark thoughts, and for a text
      that is empty or longer than a response.
    """
    marks = sampler.row_inputs(traj)
    if THINK not in marks:
      raise ValueError(
        f'method.rollout: ThoughtGain needs {THINK}, but the row_inputs_device '
        f'of {type(sampler.task).__name__} gives {sorted(marks)}'
      )
    token_NM, count_N = _texts(done.examples, sampler.tokenizer, traj)
    thought = sampler.run(thoughts, traj, marks[THINK], count_N.max())
    none = sampler.run(without, thought)
    text = token_NM, count_N
    after = sampler.logp(sampler.run(followed, thought, *text))
    plain = sampler.reference_logp(sampler.run(followed, none, *text))
    return sampler.run(_with_gain, thought, after, plain), []


def _texts(
  examples: list[Any], tokenizer: Any, traj: Trajectories
) -> tuple[np.ndarray, np.ndarray]:
  """(tokens [N, M], their numbers [N]) of the answers.

  M is that of responses, so that all rollouts are programs of one shape.
  """
  ids = [tokenizer.encode(example.answer) for example in examples]
  longest, room = max(map(len, ids)), traj.response_BT.shape[1]
  if not all(ids) or longest > room:
    raise ValueError(
      'method.rollout: ThoughtGain needs texts of 1 to '
      f'rollout.max_response_tokens = {room} tokens, got '
      f'{sorted({len(x) for x in ids})}'
    )
  token_NM = np.zeros((len(ids), room), np.int32)
  for row_M, x in zip(token_NM, ids, strict=True):
    row_M[: len(x)] = x
  return token_NM, np.asarray([len(x) for x in ids], np.int32)


def thoughts(traj: Trajectories, think_BT: Array, room: Array) -> Trajectories:
  """Rows up to the end of their thought, with `room` tokens left."""
  T = traj.response_BT.shape[1]
  place_1T = jnp.arange(T)[None]
  end_B = jnp.where(think_BT > 0, place_1T + 1, 0).max(axis=1)
  end_B = jnp.where(end_B > 0, end_B, traj.length_B)
  return _cut(traj, jnp.minimum(end_B, T - room))


def without(traj: Trajectories) -> Trajectories:
  """Empty rows."""
  return _cut(traj, jnp.zeros_like(traj.length_B))


def _cut(traj: Trajectories, length_B: Array) -> Trajectories:
  """The first tokens of rows."""
  place_1T = jnp.arange(traj.response_BT.shape[1])[None]
  kept_BT = place_1T < length_B[:, None]
  return traj.replace(
    response_BT=jnp.where(kept_BT, traj.response_BT, 0),
    kind_BT=jnp.where(kept_BT, traj.kind_BT, PAD),
    mask_BT=zero_masked(traj.mask_BT, kept_BT),
    logp_behaviour_BT=zero_masked(traj.logp_behaviour_BT, kept_BT),
    length_B=length_B.astype(jnp.int32),
  )


def followed(
  traj: Trajectories, token_NM: Array, count_N: Array
) -> Trajectories:
  """Rows with the text of their prompt, whose tokens are the only trained ones.

  There is room for it.
  """
  G, M = traj.group_size, token_NM.shape[1]
  token_BM, count_B = (jnp.repeat(x, G, axis=0) for x in (token_NM, count_N))
  place_BT = (
    jnp.arange(traj.response_BT.shape[1])[None] - traj.length_B[:, None]
  )
  text_BT = (place_BT >= 0) & (place_BT < count_B[:, None])
  picked_BT = jnp.take_along_axis(
    token_BM, jnp.clip(place_BT, 0, M - 1), axis=1
  )
  return traj.replace(
    response_BT=jnp.where(text_BT, picked_BT, traj.response_BT),
    kind_BT=jnp.where(text_BT, POLICY, traj.kind_BT),
    mask_BT=text_BT.astype(jnp.float32),
    logp_behaviour_BT=jnp.zeros_like(traj.logp_behaviour_BT),
    length_B=traj.length_B + count_B,
  )


def _with_gain(
  traj: Trajectories, after_BT: Array, plain_BT: Array
) -> Trajectories:
  """Thoughts with the log-probabilities of their texts."""
  return traj.replace(
    extras={
      **traj.extras,
      'target_logp_B': after_BT.sum(axis=1),
      'plain_logp_B': plain_BT.sum(axis=1),
    }
  )
