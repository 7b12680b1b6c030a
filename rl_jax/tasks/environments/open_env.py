"""Environments of OpenEnv: servers with sessions, by their own clients."""

import dataclasses
import json
import string
from typing import Any

from rl_jax import user_modules
from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  AsyncEnvironment,
  EnvironmentTask,
  Reply,
)

INVALID = 'Invalid action.'
# Codes of an action that is not of its type, or that the environment's `step`
# raises an error for: the policy's own doing, which must not void its row.
_REFUSED = ('VALIDATION_ERROR', 'EXECUTION_ERROR')
_MOST_SAID = 200  # characters of why, in the log


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class OpenEnv(EnvironmentTask):
  """Episodes of the server that a client connects to.

    # my_client.py
    from openenv.core.generic_client import GenericEnvClient
    def client():
      return GenericEnvClient(base_url='http://localhost:8000')

    OpenEnv(client='my_client.py:client', action='code', observation='output')

  client: 'PATH.py:NAME', 'MODULE:NAME' or a function () -> a client, not yet
    connected, with the methods `connect`, `reset(seed=...)`, `step` and
    `close`, all of them `async def`; every episode has one, and thousands share
    a process.
  action: the field of an action that the policy's text is put into.
  observation: the field of an observation that the policy reads; '': all of it,
    as JSON.
  prompt: text in front of the first observation; in chat form the system's
    message.
  invalid_reward: of a turn that the server refuses, or that raises an error in
    the `step` of its environment. It is answered with 'Invalid action.' and the
    observation before; `info` says why.
  deterministic: whether the server obeys its seed and answers the same actions
    in the same way; see EnvironmentTask.
  solved: the sum of rewards from which on an episode counts as solved.
  alphabet: for a character tokenizer.

  Components: `reward` of the environment, `outcome` 1 if an episode ends
  solved. Source: https://github.com/meta-pytorch/OpenEnv.
  """

  client: Any
  action: str = 'message'
  observation: str = ''
  prompt: str = ''
  invalid_reward: float = 0.0
  deterministic: bool = True
  solved: float = 1.0
  alphabet: str | tuple[str, ...] = string.printable
  chat: bool = False
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  def __post_init__(self):
    object.__setattr__(self, 'client', user_modules.reference(self.client))

  @property
  def traits(self) -> TaskTraits:
    """Clients wait in one event loop."""
    return TaskTraits(
      chat=self.chat,
      workers='asyncio',
      global_random=False,
      deterministic=self.deterministic,
    )

  @property
  def code_modules(self) -> tuple[str, ...]:
    """The module of the client; experiment.json records its file."""
    return (self.client.split(':')[0],)

  def example(self, split: str, index: int) -> Example:
    """An initial state, with the prompt."""
    example = super().example(split, index)
    return dataclasses.replace(example, prompt=self.prompt)

  def prepare(self) -> None:
    """Makes a client once before workers are forked, which connects to nothing.

    So what it imports is there, and what it lacks is said at start.
    """
    user_modules.resolve(self.client)()

  def make(self, example: Example) -> Any:
    """An episode that has not started."""
    return OpenEnvEpisode(self)


class OpenEnvEpisode(AsyncEnvironment):
  """An episode, which is a session of the server."""

  def __init__(self, task: OpenEnv):
    self._task, self._total, self._said = task, 0.0, ''
    self._client = user_modules.resolve(task.client)()

  async def reset(self, seed: int) -> Reply:
    """The first observation."""
    await self._client.connect()
    result = await self._client.reset(seed=seed)
    self._said = self._text(result)
    return Reply(self._said)

  async def step(self, action: str) -> Reply:
    """The server's answer."""
    try:
      result = await self._client.step({self._task.action: action})
    except RuntimeError as error:  # as the package's client has it
      why = str(error)
      if not any(code in why for code in _REFUSED):
        raise
      reply = self._reply(self._task.invalid_reward, f'{INVALID}\n{self._said}')
      return dataclasses.replace(reply, info={'refused': why[:_MOST_SAID]})
    self._said = self._text(result)
    reward = 0.0 if result.reward is None else float(result.reward)
    return self._reply(reward, self._said, bool(result.done))

  async def close(self) -> None:
    """Ends the session."""
    await self._client.close()

  def _reply(self, reward, text, done=False):
    self._total += reward
    solved = float(done and self._total >= self._task.solved)
    return Reply(text, {base.OUTCOME: solved, 'reward': reward}, done=done)

  def _text(self, result):
    """Returns what the policy reads of a result."""
    said, name = result.observation, self._task.observation
    if not name:
      return json.dumps(said, sort_keys=True)
    if name not in said:
      raise ValueError(
        f'OpenEnv.observation = {name!r}: the server has {sorted(said)}'
      )
    return str(said[name])
