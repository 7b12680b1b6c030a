"""Converts a model to a Hugging Face directory for `transformers`.

  python -m experiments.export_weights --checkpoint=DIR_OR_WORKDIR --out=HF_DIR

Of a work directory of training, the newest valid checkpoint is exported.
Adapters are merged into the weights; a value head is left out. With --adapters
only the adapters are written, in the files of PEFT, which name the model that
the run began with; with --reward_model a sequence classifier
(LlamaForSequenceClassification, ...) whose score is the value head.
"""

from absl import app, flags, logging
import jax

from experiments.flags import configuration, outputs
from rl_jax.models import transformer
from rl_jax.models.files import hf_classifier, hf_export, peft
from rl_jax.runs import directory
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig

_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Model or work directory.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'Directory to write.', required=True)
_DTYPE = flags.DEFINE_enum(
  'dtype', None, transformer.DTYPES, 'Dtype in the file; default: as trained.'
)
_ADAPTERS = flags.DEFINE_bool(
  'adapters', False, 'Write the adapters only, for PEFT.'
)
_REWARD_MODEL = flags.DEFINE_bool(
  'reward_model', False, 'Write a sequence classifier with one label.'
)
_PAD = flags.DEFINE_string(
  'pad_token', None, 'Pads rows, instead of the pad token of the tokenizer.'
)


def main(argv: list[str]) -> None:
  """Exports the weights."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments {argv[1:]}')
  if _ADAPTERS.value:
    for flag in (_DTYPE, _REWARD_MODEL, _PAD):
      if flag.value:
        raise ValueError(
          f'--{flag.name}={flag.value}: files of --adapters have none'
        )
  outputs.check_not_source('checkpoint', _CHECKPOINT.value, _OUT.value)
  outputs.check_not_of_run('out', _OUT.value)
  mesh = mesh_lib.make_mesh(MeshConfig(fsdp=jax.device_count()))
  cfg, params, tokenizer = policy_lib.load_checkpoint(_CHECKPOINT.value, mesh)
  if _PAD.value is not None:
    tokenizer = hf_classifier.with_pad(tokenizer, _PAD.value)
  if _ADAPTERS.value:
    base = directory.base_of(_CHECKPOINT.value)
    peft.export_adapters(_OUT.value, cfg, params, base)
  else:
    hf_export.export_hf(
      _OUT.value,
      cfg,
      params,
      tokenizer,
      _DTYPE.value,
      classifier=_REWARD_MODEL.value,
    )
  logging.info('wrote %s', _OUT.value)


if __name__ == '__main__':
  configuration.run(main)
