"""Verifiers, and the protocol of runners, which sample rows and judge them.

  play(engine, params, traj, key, examples) -> the rows with their responses
  outcomes(traj, examples, texts, due_B) -> one Outcome for every row of the
    examples; due_B: those that are wanted, None: all
  said(texts, own) -> what judges read of the rows `own`
  shown() -> function of a row: what more is logged of it
  metrics() -> of the last round

There are three runners. A text verifier decodes and judges in worker processes;
a token verifier is a pure function of the trajectories on the device. In
`slot_runner.SlotRunner` environments answer every turn; for it a task is the
environment that takes one action, a response.
Only the code that makes runners distinguishes them.
host, restore, forget and close are those of a journal of outcomes, which only
outcomes that are not reproducible need.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any, ClassVar
import zlib

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.rollouts.responses import Texts, own_rows
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome

POSITION = 'verifications'  # in the JSON object of checkpoints
NAMES = 'components'  # in the same place


class Journaled(Stateful):
  """Hands on to a NumberedRounds what a checkpoint asks of it."""

  name: ClassVar[str] = 'verifier'

  def __init__(self, journal: Any):
    self._journal = journal

  def host(self) -> dict[str, Any]:
    """The position in the journal."""
    return {POSITION: self._journal.mark()}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Goes back to the position in the journal."""
    del arrays
    self._journal.restore(host.get(POSITION, 0))

  def forget(self, host: Mapping[str, Any]) -> None:
    """Drops what the journal holds from before a committed checkpoint."""
    self._journal.forget(host.get(POSITION, 0))

  def close(self) -> None:
    """Ends the workers."""
    self._journal.close()


class _OneTurn:
  """A response is one turn of the policy."""

  def play(
    self, engine: Any, params: Any, traj: Trajectories, key: Any, examples: Any
  ) -> Trajectories:
    """Responses, not yet read by the host."""
    del examples
    return engine.generate(params, traj=traj, key=key)

  def said(self, texts: Texts, own: slice) -> Texts:
    """The responses."""
    del own
    return texts

  def shown(self) -> Callable[[int], dict[str, Any]]:
    """Nothing but the response."""
    return lambda row: {}

  def metrics(self) -> dict[str, float]:
    """Answers no metrics."""
    return {}


class TextVerifier(Journaled, _OneTurn):
  """Outcomes of decoded responses, from NumberedRewards."""

  def host(self) -> dict[str, Any]:
    """The position in the journal, and what a sample that is lost has 0 of."""
    return {**super().host(), NAMES: self._journal.names()}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Continues there."""
    super().restore(arrays, host)
    self._journal.add_names(host.get(NAMES, ()))

  def outcomes(
    self,
    traj: Trajectories,
    examples: Sequence[Any],
    texts: Texts,
    due_B: np.ndarray | None = None,
  ) -> list[Outcome]:
    """Outcomes of all rows, without components where a row is not due.

    texts: of this process' own rows. Each process decodes and judges the rows
    of its own prompts.

    Raises:
      RuntimeError: the processes drew different prompts.
    """
    own = own_rows(len(examples), traj.group_size)
    rows = range(own.start, own.stop)
    due = [row for row in rows if due_B is None or due_B[row]]
    found = self._journal.reward(
      [examples[row // traj.group_size] for row in due],
      [texts[row - own.start] for row in due],
    )
    known = dict(zip(due, found, strict=True))
    outcomes = [known.get(row, Outcome(None)) for row in rows]
    if processes.count() == 1:
      return outcomes
    ids = zlib.crc32(repr([e.id for e in examples]).encode())
    mine = [[o.components, o.kind, o.detail] for o in outcomes]
    parts = processes.gather([ids, mine])
    if any(other != ids for other, _ in parts):
      raise RuntimeError(
        'the processes drew different prompts: is the data the same on all '
        'hosts?'
      )
    return [Outcome(*o) for _, part in parts for o in part]


class TokenVerifier(Stateful, _OneTurn):
  """Outcomes by the task's `reward_device`, a function of tokens; no text.

  Raises:
    ValueError: the task has no such function.
  """

  name: ClassVar[str] = 'verifier'

  def __init__(self, task: Any, tokenizer: Any, mesh: jax.sharding.Mesh):
    if not task.supports('reward_device'):
      raise ValueError(
        f'verifier.on_device = True, but {type(task).__name__} has no '
        'device verifier (reward_device)'
      )
    self._task, self._tokenizer = task, tokenizer
    self._everywhere = mesh_lib.replicated(mesh)
    self._reward = jax.jit(
      functools.partial(token_rewards, task, tokenizer),
      out_shardings=self._everywhere,
    )

  def outcomes(
    self,
    traj: Trajectories,
    examples: Sequence[Any],
    texts: Texts,
    due_B: np.ndarray | None = None,
  ) -> list[Outcome]:
    """Outcomes of the rows of the examples, which come first in traj."""
    del texts, due_B
    answers = self._task.device_answers(examples, self._tokenizer)
    more = traj.num_prompts - len(examples)  # padding of an evaluation
    answers = [
      np.pad(x, [(0, more)] + [(0, 0)] * (x.ndim - 1)) for x in answers
    ]
    rewards = self._reward(traj, *processes.put(answers, self._everywhere))
    rewards = {name: x.tolist() for name, x in processes.read(rewards).items()}
    return [
      Outcome({name: x[row] for name, x in rewards.items()})
      for row in range(len(examples) * traj.group_size)
    ]

  def host(self) -> dict[str, Any]:
    """There is no journal: the same tokens have the same rewards."""
    return {POSITION: 0}

  def forget(self, host: Mapping[str, Any]) -> None:
    """There is nothing to forget."""

  def close(self) -> None:
    """There are no workers."""


def token_rewards(
  task: Any,
  tokenizer: Any,
  traj: Trajectories,
  answer_NA: jax.Array,
  answer_length_N: jax.Array,
) -> dict[str, jax.Array]:
  """Reward components f32[B] by the task's function of tokens."""
  return task.reward_device(
    traj.response_BT,
    traj.length_B,
    jnp.repeat(answer_NA, traj.group_size, axis=0),
    jnp.repeat(answer_length_N, traj.group_size),
    tokenizer,
  )


def token_inputs(
  task: Any, tokenizer: Any, traj: Trajectories
) -> dict[str, jax.Array]:
  """Extras [B, T] by the task's `row_inputs_device`, if it has that."""
  if not task.supports('row_inputs_device'):
    return {}
  return task.row_inputs_device(traj.response_BT, traj.length_B, tokenizer)
