"""The sequence policy: the decoder of the library acts and is trained."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control import rows
from rl_jax.control.base import Actor, Step, World, declared
from rl_jax.models import decoding, heads, kv_cache, presets, spec, transformer
from rl_jax.models.transformer import ModelConfig
from rl_jax.types import Array, static


def model_for(
  world: World, *, layers: int = 2, width: int = 32, **fields: Any
) -> ModelConfig:
  """A small decoder whose tokens are the actions of the world."""
  heads_ = max(1, width // 16)
  return presets.small(
    vocab_size=rows.num_actions(world),
    num_layers=layers,
    width=width,
    num_heads=heads_,
    num_kv_heads=heads_,
    head_size=16,
    mlp_size=2 * width,
    **fields,
  )


def init_params(world: World, model: ModelConfig, key: Array) -> dict[str, Any]:
  """Parameters of the decoder, and the map of inputs [F, D]."""
  shape = rows.num_features(world), model.width
  specs = transformer.specs(model)
  specs['inputs'] = spec.ParamSpec(shape, 'float32', (None, None), 0.5)
  return spec.init(specs, key)


class Context(NamedTuple):
  """The memory of a SequenceActor: its cache, and the step to be fed next."""

  weights: Any  # decoding.decoding_weights, sliced once
  cache: kv_cache.Cache
  token: Array
  reward: Array
  last: Array
  fed: Array  # steps so far, the same number for all rows


@declared
class SequenceActor(Actor):
  """Draws actions from the decoder, which has read the history so far.

  It decodes with the cache of the library, so that its log-probabilities are
  those of training (E1). steps: of a history at most. greedy: the likeliest
  action in place of a draw.
  """

  world: World
  params: Any
  model: ModelConfig = static()
  steps: int = ranged(low=1, static=True)
  greedy: bool = static(default=False)
  temperature: float = ranged(1.0, 0.0, open_low=True)

  def check(self, steps: int) -> None:
    """Raises ValueError for more steps than its cache holds."""
    if steps > self.steps:
      raise ValueError(
        f'SequenceActor.steps = {self.steps}, but the history has {steps}: its '
        'cache holds no more'
      )

  def init(self, key: Array) -> Context:
    """An empty history after the prompt."""
    del key
    prompt_11 = jnp.zeros((1, 1), jnp.int32)
    _, prompt = decoding.prefill(
      self.params, self.model, prompt_11, jnp.ones((1, 1))
    )
    cache = kv_cache.extend(self.model, prompt, 1, self.steps + 1, self.steps)
    return Context(
      weights=decoding.decoding_weights(self.params, self.model),
      cache=cache,
      token=jnp.int32(0),
      reward=jnp.float32(0.0),
      last=jnp.bool_(False),
      fed=jnp.int32(0),
    )

  def logits(self, memory: Context, obs: Array) -> tuple[Array, Context]:
    """Scores [A] of the next action."""
    flags_2 = jnp.stack([memory.last, memory.fed == 0])
    inputs_F = rows.features(
      self.world, obs, memory.token, memory.reward, flags_2
    )
    hidden_1D, cache = decoding.decode_step(
      memory.weights,
      self.model,
      memory.token[None],
      memory.fed[None],
      memory.fed,
      memory.cache,
      inputs_BD=(inputs_F @ self.params['inputs'])[None],
    )
    logits_1V = heads.logits(self.params, self.model, hidden_1D)
    return logits_1V[0], memory._replace(cache=cache, fed=memory.fed + 1)

  def act(
    self, memory: Context, obs: Array, key: Array
  ) -> tuple[Array, Context]:
    """A draw at the temperature, or the likeliest action."""
    logits_A, memory = self.logits(memory, obs)
    if self.greedy:
      action = jnp.argmax(logits_A)
    else:
      action = jax.random.categorical(key, logits_A / self.temperature)
    return action.astype(jnp.int32), memory

  def learn(self, memory: Context, step: Step) -> Context:
    """Keeps the step for the next input."""
    return memory._replace(
      token=step.action, reward=step.reward, last=step.last
    )
