"""A selector of prompts with a model that predicts their success (PCL)."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rl_jax import randomness
from rl_jax.models import critic, heads, transformer
from rl_jax.models import params as params_lib
from rl_jax.pieces.selection.prompt_value import candidates, mean_success
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs.policy import Policy
from rl_jax.runtime import processes
from rl_jax.types import Array, GroupSummary


class ValuedSelector:
  """The interface of HostSelector for a piece that `predicts`.

  Its model has the initial weights of the policy, all of which are trained, and
  a new value head; it reads prompts only. It takes three times the memory of
  the policy's weights in float32, on every device, and a forward pass of the
  candidates and an update of the batch in each iteration.
  """

  memory = None

  def __init__(
    self,
    selector: Any,
    prompts: PromptSet,
    policy: Policy,
    key: jax.Array,
  ):
    """Raises ValueError in a run of several processes."""
    if processes.count() > 1:
      raise ValueError(
        f'method.selector: {type(selector).__name__} has a model of prompts on '
        f'one process, and there are {processes.count()}'
      )
    self._selector, self._prompts = selector, prompts
    self._key = randomness.purpose_key(key, randomness.SELECTION)
    model = dataclasses.replace(
      policy.model, value_head=True, num_values=1, critic=critic.SHARED
    )
    params = {k: x for k, x in policy.params.items() if k != 'critic'}
    params.pop('value_head', None)
    params |= params_lib.init_missing(model, params, self._key)
    self._adam = optax.adam(selector.learning_rate)
    copy = jax.jit(functools.partial(jax.tree.map, _as_float32))
    params = copy({name: params[name] for name in transformer.specs(model)})
    self._values = jax.jit(functools.partial(prompt_values, model))
    self._learn = jax.jit(functools.partial(learned, model, self._adam))
    self.state: dict[str, Any] = {
      'prompts': jax.device_get(selector.init(len(prompts))),
      'params': params,
      'optimizer': self._adam.init(params),
    }

  def select(self, count: int) -> np.ndarray:
    """Indices of the next prompts; moves the state on."""
    before = self.state['prompts']
    piece, size = self._selector, len(self._prompts)
    with jax.transfer_guard('allow'):
      ids = np.asarray(
        candidates(
          self._key, before['batches'], piece.candidate_ratio, count, size
        )
      )
      value = np.array(before['value'])
      for start in range(0, len(ids), count):
        own = ids[start : start + count]
        value[own] = self._predicted(np.resize(own, count))[: len(own)]
      found, after = piece.select({**before, 'value': value}, self._key, count)
      self.state = {**self.state, 'prompts': jax.device_get(after)}
      return np.asarray(found)

  def _predicted(self, ids: np.ndarray) -> np.ndarray:
    _, prompt_NP, mask_NP, _ = self._prompts.batch(ids)
    return np.asarray(self._values(self.state['params'], prompt_NP, mask_NP))

  def observe(self, ids: np.ndarray, summary: GroupSummary) -> None:
    """The model learns the mean success of these prompts, in one step."""
    with jax.transfer_guard('allow'):
      _, prompt_NP, mask_NP, _ = self._prompts.batch(ids)
      target_N = mean_success(summary, self._selector.success)
      state = self.state['params'], self.state['optimizer']
      params, optimizer = self._learn(*state, (prompt_NP, mask_NP), target_N)
      self.state = {**self.state, 'params': params, 'optimizer': optimizer}


def _as_float32(x: Array) -> Array:
  """A new array."""
  return jnp.array(x, jnp.float32, copy=True)


def prompt_values(
  model: transformer.ModelConfig, params: Any, prompt_NP: Array, mask_NP: Array
) -> Array:
  """The value head after the last token of each prompt, [N]."""
  N = len(prompt_NP)
  hidden_N1D = transformer.forward(
    params,
    model,
    prompt_NP,
    mask_NP,
    jnp.zeros((N, 1), jnp.int32),
    jnp.ones((N, 1)),
  )
  return heads.values(params, hidden_N1D[:, 0])


def learned(
  model: transformer.ModelConfig,
  adam: optax.GradientTransformation,
  params: Any,
  optimizer: Any,
  prompts: tuple[Array, Array],
  target: tuple[Array, Array],
) -> tuple[Any, Any]:
  """(params, optimizer) after a step on the mean of (V - success)^2.

  target: (success [N], 1 where it is known [N]).
  """
  success_N, known_N = target

  def loss(params: Any):
    error_N = prompt_values(model, params, *prompts) - success_N
    return (known_N * error_N**2).sum() / jnp.maximum(known_N.sum(), 1)

  gradient = jax.grad(loss)(params)
  update, optimizer = adam.update(gradient, optimizer, params)
  return optax.apply_updates(params, update), optimizer
