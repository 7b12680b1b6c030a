"""The source of a run's policy."""

import dataclasses
from typing import Any

from absl import logging

from rl_jax import checks
from rl_jax.checks import INT32, checked, chosen, ranged
from rl_jax.models import critic as critic_lib
from rl_jax.models import lora, platform, transformer
from rl_jax.models.params import TRAINED
from rl_jax.models.transformer import ModelConfig

_ADAPTERS = ('lora_rank', 'lora_alpha', 'lora_targets')


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ModelSource:
  """The source of the policy, and which of its weights are trained.

  path: a model directory, a Hugging Face directory or a GGUF file; None means
  random initial weights of `config`, with a tokenizer made by the task. With a
  path, `config` only serves to plan memory before the files are there.
  compute_dtype, attention: 'auto' chooses by platform (models/platform.py).
  param_dtype: of the weights of the model, whatever dtype the files have;
  adapters and value head are always float32. Trained bfloat16 weights have
  float32 master weights in the optimizer's state: 4 bytes in all, and 2 for
  each copy of a named policy.
  num_values: outputs of the value head, for methods with several returns.
  value_layers: linear layers of the value head, with max(0, x) between two.
  critic: what the value head reads. 'shared': states of the policy, whose
  layers the loss of the values trains, too; 'detached': the same without
  gradient, so that this loss trains the head only; 'own': states of separate
  layers, which start as a copy of the policy's files (drawn again without a
  path), cost a second forward pass and as much memory as the policy, and whose
  gradient is clipped by itself; 'residual': the first output reads such layers,
  the others states of the policy as 'shared'.
  value_from: a work or model directory whose value head, a reward model's say,
  is that of the policy at the start. With its own critic the layers that
  this head read come with it; other weights are not read.
  lora_rank: 0 trains all weights; otherwise only adapters of this rank on
  lora_targets are trained, scaled by lora_alpha / lora_rank.

  Raises: ValueError for float16 weights that would be trained.
  """

  path: str | None = None
  config: ModelConfig | None = None
  param_dtype: str = chosen('float32', transformer.DTYPES)
  compute_dtype: str = chosen(platform.AUTO, platform.COMPUTE_DTYPES)
  attention: str = chosen(platform.AUTO, platform.ATTENTION)
  value_head: bool = False
  critic: str = chosen(critic_lib.SHARED, critic_lib.CRITICS)
  num_values: int = ranged(1, 1, INT32)
  value_layers: int = ranged(1, 1, 2)
  value_from: str | None = None
  lora_rank: int = ranged(0, 0, INT32)
  lora_alpha: float = ranged(16.0, 0.0, open_low=True)
  lora_targets: tuple[str, ...] = lora.TARGETS
  remat: bool = False

  def __post_init__(self):
    lora.check_targets('ModelSource', self.lora_targets)
    if self.value_from is not None and not self.value_head:
      raise ValueError(
        f'ModelSource.value_from = {self.value_from!r} without value_head=True'
      )
    if self.critic != critic_lib.SHARED and not self.value_head:
      raise ValueError(
        f'ModelSource.critic = {self.critic!r} without value_head=True'
      )
    if self.critic == critic_lib.RESIDUAL and self.num_values < 2:
      raise ValueError(
        "ModelSource.critic = 'residual' adds to a first output: num_values = "
        f'{self.num_values} must be at least 2'
      )
    if critic_lib.has_own(self) and self.lora_rank:
      raise ValueError(
        f'ModelSource.critic = {self.critic!r} trains all layers of the '
        f'critic, and lora_rank = {self.lora_rank} only adapters: set '
        "critic='detached'"
      )
    if self.param_dtype not in TRAINED and not self.lora_rank:
      raise ValueError(
        f'ModelSource.param_dtype = {self.param_dtype!r} with lora_rank = 0: '
        'an update of 1e-6 is lost when a weight is rounded. Set param_dtype = '
        "'float32', or 'bfloat16', which has float32 master weights, or "
        'lora_rank > 0: adapters are float32'
      )
    if self.config is not None and self.config.lora_rank and not self.lora_rank:
      raise ValueError(
        f'ModelSource.config has lora_rank = {self.config.lora_rank}, but '
        'adapters are those of the source: set ModelSource.lora_rank'
      )

  def applied_to(
    self, model: ModelConfig, saved: ModelConfig | None = None
  ) -> ModelConfig:
    """The model with the fields of the source, for training.

    saved: the configuration of the files at `path`, whose adapters the run
    continues; None if nothing was saved.

    Raises: ValueError if saved adapters would be dropped or rescaled.
    """
    if saved is not None:
      self._check_saved(saved)
    return dataclasses.replace(
      model,
      remat=self.remat,
      value_head=self.value_head,
      critic=self.critic,
      num_values=self.num_values,
      value_layers=self.value_layers,
      unscored_id=None,  # losses read the last token of a response
      param_dtype=self.param_dtype,
      **checks.values(self, _ADAPTERS),
    )

  def _check_saved(self, saved: ModelConfig) -> None:
    if saved.value_head and not self.value_head:
      logging.warning('the value head of %s is not used', self.path)
    elif saved.value_head and saved.num_values != self.num_values:
      raise ValueError(
        f'{self.path} has a value head with {saved.num_values} outputs: set '
        f'model.num_values={saved.num_values}, not {self.num_values}'
      )
    elif saved.value_head and saved.value_layers != self.value_layers:
      raise ValueError(
        f'{self.path} has a value head of {saved.value_layers} layers: set '
        f'model.value_layers={saved.value_layers}, not {self.value_layers}'
      )
    if not saved.lora_rank:
      return
    differing = [
      name for name in _ADAPTERS if _value(saved, name) != _value(self, name)
    ]
    if differing:

      def listed(x):
        return ', '.join(
          f'model.{name}={value!r}'
          for name, value in checks.values(x, differing).items()
        )

      raise ValueError(
        f'{self.path} has adapters with {listed(saved)}, but the run has '
        f'{listed(self)}. Set {listed(saved)} to continue them, or merge them '
        'into the weights first: python -m experiments.export_weights '
        f'--checkpoint={self.path} --out=DIR'
      )


def _value(holder: ModelSource | ModelConfig, name: str) -> Any:
  """A field; the order of targets does not matter."""
  value = checks.values(holder, (name,))[name]
  return frozenset(value) if name == 'lora_targets' else value
