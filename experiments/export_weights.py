"""A model of this project -> a Hugging Face directory for `transformers`.

  python -m experiments.export_weights --checkpoint=DIR --out=HF_DIR

Adapters are merged into the weights; a value head is left out.
"""

from absl import app, flags, logging

from rl_jax.models import hf_export, model_dir, transformer

_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'What load_any accepts: a model directory.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'Directory to write.', required=True)
_DTYPE = flags.DEFINE_enum(
  'dtype', None, transformer.DTYPES, 'Type in the file; default: as trained.'
)


def main(argv: list[str]) -> None:
  """Exports the weights."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments {argv[1:]}')
  cfg, params, tokenizer = model_dir.load_any(_CHECKPOINT.value)
  hf_export.export_hf(_OUT.value, cfg, params, tokenizer, _DTYPE.value)
  logging.info('wrote %s', _OUT.value)


if __name__ == '__main__':
  app.run(main)
