"""Converts public weights to a model directory.

  python -m experiments.import_weights --source=HF_DIR_OR_GGUF --out=DIR

The source is a Hugging Face directory (Llama, SmolLM2, Mistral, Qwen2, Qwen2.5,
Qwen3, Gemma 2, text models of Gemma 3) or a .gguf file. Training also reads
these directly; a model directory loads faster and onto any mesh. With
--adapters=PEFT_DIR it has these adapters, which a run with their rank, alpha
and targets continues; the command logs all three. With --untrained=SEED the
weights are drawn again and only sizes and tokenizer are those of the source, to
see what a model owes to its pre-training.
"""

from absl import app, flags, logging
import jax

from experiments.flags import configuration, outputs
from rl_jax.models import params as params_lib
from rl_jax.models import spec, transformer
from rl_jax.models.files import model_dir, peft

_SOURCE = flags.DEFINE_string(
  'source', None, 'Hugging Face directory or .gguf file.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'Directory to write.', required=True)
_PARAM_DTYPE = flags.DEFINE_enum(
  'param_dtype', 'float32', transformer.DTYPES, 'Dtype of the stored weights.'
)
_ADAPTERS = flags.DEFINE_string(
  'adapters', None, 'Directory of PEFT: adapters of the source.'
)
_UNTRAINED = flags.DEFINE_integer(
  'untrained',
  None,
  'Seed of random weights in place of those of the source.',
  lower_bound=0,
  upper_bound=2**63 - 1,
)


def main(argv: list[str]) -> None:
  """Imports the weights."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments {argv[1:]}')
  outputs.check_not_source('source', _SOURCE.value, _OUT.value)
  outputs.check_not_source('adapters', _ADAPTERS.value, _OUT.value)
  cfg, params, tokenizer = model_dir.load_any(
    _SOURCE.value, param_dtype=_PARAM_DTYPE.value
  )
  if _UNTRAINED.value is not None:
    params = params_lib.init_params(cfg, jax.random.key(_UNTRAINED.value))
  if _ADAPTERS.value is not None:
    cfg, adapters = peft.import_adapters(_ADAPTERS.value, cfg)
    params = {**params, **adapters}
  model_dir.save_model(_OUT.value, cfg, params, tokenizer)
  count = spec.count(transformer.specs(cfg))
  logging.info('wrote %s: %d parameters, %s', _OUT.value, count, cfg)


if __name__ == '__main__':
  configuration.run(main)
