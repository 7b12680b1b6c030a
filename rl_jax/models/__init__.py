"""Language models as functions of (params, config, arrays)."""

from rl_jax.models import presets as presets
from rl_jax.models.decoding import decode_step as decode_step
from rl_jax.models.decoding import prefill as prefill
from rl_jax.models.decoding import unstacked as unstacked
from rl_jax.models.files.model_dir import load_any as load_any
from rl_jax.models.files.model_dir import save_model as save_model
from rl_jax.models.heads import logits as logits
from rl_jax.models.heads import value_specs as value_specs
from rl_jax.models.heads import values as values
from rl_jax.models.kv_cache import Cache as Cache
from rl_jax.models.kv_cache import PromptCache as PromptCache
from rl_jax.models.kv_cache import RowCache as RowCache
from rl_jax.models.kv_cache import extend as extend
from rl_jax.models.kv_cache import first_places as first_places
from rl_jax.models.kv_cache import for_turns as for_turns
from rl_jax.models.lora import merge as merge
from rl_jax.models.rope import LinearScaling as LinearScaling
from rl_jax.models.rope import RopeScaling as RopeScaling
from rl_jax.models.rope import YarnScaling as YarnScaling
from rl_jax.models.spec import ParamSpec as ParamSpec
from rl_jax.models.spec import is_spec as is_spec
from rl_jax.models.tokenizer import ByteTokenizer as ByteTokenizer
from rl_jax.models.tokenizer import CharTokenizer as CharTokenizer
from rl_jax.models.transformer import ModelConfig as ModelConfig
from rl_jax.models.transformer import forward as forward
from rl_jax.models.transformer import specs as specs
