"""Environments: tasks of several turns, games and tools."""

from rl_jax.tasks.environments.base import Ask as Ask
from rl_jax.tasks.environments.base import (
  AsyncEnvironment as AsyncEnvironment,
)
from rl_jax.tasks.environments.base import Environment as Environment
from rl_jax.tasks.environments.base import EnvironmentTask as EnvironmentTask
from rl_jax.tasks.environments.base import Reply as Reply
from rl_jax.tasks.environments.with_tools import WithTools as WithTools
