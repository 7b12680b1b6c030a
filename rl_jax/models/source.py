"""Where the policy of a run comes from."""

import dataclasses

from rl_jax.checks import check_choice
from rl_jax.models import platform
from rl_jax.models.transformer import ModelConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelSource:
  """Where the policy comes from.

  path: a model directory, a Hugging Face directory or a GGUF file; None means
  random initial weights of `config`, with a tokenizer made by the task. With a
  path, `config` only serves to plan memory before the files are there.
  compute_dtype, attention: 'auto' chooses by platform (accelerators.py).
  """

  path: str | None = None
  config: ModelConfig | None = None
  compute_dtype: str = platform.AUTO
  attention: str = platform.AUTO  # 'plain', 'cudnn' or 'splash'
  value_head: bool = False
  lora_rank: int = 0
  remat: bool = False

  def __post_init__(self):
    check_choice(self, 'compute_dtype', platform.COMPUTE_DTYPES)
    check_choice(self, 'attention', platform.ATTENTION)
