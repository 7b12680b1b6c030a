"""Prints one JSON line with the accuracy and rewards of a policy.

python -m experiments.evaluate --checkpoint=runs/grpo
python -m experiments.evaluate --checkpoint=smollm2 --data=problems.jsonl
  --question='{input}' --answer='{target}' --num_samples=8 --limit=100
python -m experiments.evaluate --checkpoint=smollm2 --data=choices.jsonl
  --options=choices --template='Question: {question} Answer:'
python -m experiments.evaluate --checkpoint=models/Qwen2.5-Math-1.5B-Oat-Zero
  --paper=dr_grpo

--checkpoint is a work directory of `train` (its newest valid checkpoint, or
that of --step), a model directory, a Hugging Face directory or a GGUF file.
--data is a configuration (configs/NAME.py or NAME), whose task is used, or
data: a JSONL, CSV or Parquet file, or what else `tasks.QuestionAnswer` reads.

What no flag says is as in the run of a work directory: its task, templates and
answer forms (also for other data), response limit, stop texts, sampling
(`evaluation` of its configuration, else as it trains). Without a run it is as
in the configuration of --data. --set=PATH=LITERAL changes any other field, for
example mesh.fsdp or task.template.arguments. pass_at_k is the unbiased
estimator; responses that could not be judged are counted by reward_errors and
in no mean. With --options nothing is sampled: acc, acc_per_character and the
others of measures.option_scores say how often the right option is the likeliest
one. --paper is a recipe, whose benchmarks, prompt, grader and decoding
are those of the evaluation; --row one of its rows, --set changes fields, and no
other flag of an evaluation counts. A number that is not finite is null: JSON
has no NaN. --out has the outcome of each row, for intervals; --texts the greedy
responses for judges outside, in the form of AlpacaEval: a list of {"dataset",
"instruction", "output", "generator"}.
"""

from collections.abc import Mapping
import json
import os

from absl import flags
import numpy as np

from experiments.flags import configuration, fields, outputs
from experiments.flags import evaluation as evaluation_flags
from experiments.flags import processes as process_flags
from experiments.papers import data_files, prompts
from experiments.papers import recipe as recipe_lib
import rl_jax
from rl_jax.config import evaluated_tokens, evaluations
from rl_jax.models.files import hf_classifier
from rl_jax.runs import directory
from rl_jax.runs.evaluation import sampling_of
from rl_jax.runtime import processes

_CHECKPOINT = flags.DEFINE_string('checkpoint', None, 'Policy.', required=True)
_STEP = flags.DEFINE_integer('step', None, 'Iteration of a work directory.')
_SEED = flags.DEFINE_integer(
  'seed', 0, 'Of sampling.', lower_bound=-(2**63), upper_bound=2**63 - 1
)
_OPPONENT = flags.DEFINE_string(
  'opponent', None, 'Policy of the other player, in games of two.'
)
_OUT = flags.DEFINE_string(
  'out', None, 'JSON file for the outcome of each row.'
)
_TEXTS = flags.DEFINE_string(
  'texts', None, 'JSON file for the greedy responses, for judges outside.'
)
_PAPER = flags.DEFINE_string('paper', '', 'Evaluate as its recipe does.')
_ROW = flags.DEFINE_string('row', '', 'Of --paper. Default: its first row.')
evaluation_flags.define_flags()
process_flags.define_flags()


def main(argv):
  """Loads, samples, verifies, prints."""
  del argv
  process_flags.start()
  if _OUT.value:
    outputs.check_file('out', _OUT.value)
  if _TEXTS.value:
    outputs.check_file('texts', _TEXTS.value)
  # A classifier is refused before its configuration is asked for.
  hf_classifier.check_writes(_CHECKPOINT.value)
  config = _config()
  found, rows = rl_jax.evaluate(
    _CHECKPOINT.value,
    config,
    step=_STEP.value,
    seed=_SEED.value,
    opponent=_OPPONENT.value,
  )
  if not processes.is_main():
    return
  if _OUT.value:
    outputs.write_json(_OUT.value, {k: _plain(v) for k, v in rows.items()})
  if _TEXTS.value:
    outputs.write_json(_TEXTS.value, generations(rows, _CHECKPOINT.value))
  by_set = {name: _settings(x) for name, x in evaluations(config).items()}
  used: dict[str, object] = {
    'split': config.evaluation.split,
    **_settings(config),
    'stop': config.rollout.stop,
  }
  if own := {name: x for name, x in by_set.items() if name}:
    used['sets'] = own
  line = {'checkpoint': _CHECKPOINT.value, **found, 'settings': used}
  print(json.dumps(outputs.finite(line), allow_nan=False))


def generations(
  rows: Mapping[str, np.ndarray], generator: str
) -> list[dict[str, str]]:
  """Greedy responses with their questions, as AlpacaEval reads them.

  dataset: the name of the evaluation set, '' of a set without a name.
  """
  found = []
  for name in rows:
    if not name.endswith('questions'):
      continue
    before = name.removesuffix('questions')
    pairs = zip(rows[name], rows[f'{before}responses'], strict=True)
    found += [
      {
        'dataset': before.removesuffix('/'),
        'instruction': str(question),
        'output': str(response),
        'generator': generator,
      }
      for question, response in pairs
    ]
  return found


def _config():
  """The configuration of the recipe, or of the run and the flags."""
  if not _PAPER.value:
    if _ROW.value:
      raise ValueError(f'--row={_ROW.value} is of --paper: give its name')
    return evaluation_flags.from_flags(directory.run_of(_CHECKPOINT.value))
  if flags.FLAGS.data is not None:
    raise ValueError('--paper has its data: give no --data')
  recipe = recipe_lib.load(_PAPER.value)
  config = recipe_lib.protocol(_PAPER.value, _ROW.value)
  data_files.check_all(recipe, _PAPER.value, False)
  folder = _CHECKPOINT.value
  if os.path.exists(os.path.join(folder, 'tokenizer.json')):
    prompts.check(recipe, config, folder)
    prompts.check_lengths(config, folder)
  return configuration.changed(config, fields.once(flags.FLAGS.set))


def _settings(config):
  """Returns how the responses of a set are made, or options compared."""
  if config.evaluation.options:
    return {'options': True, 'max_option_tokens': evaluated_tokens(config)}
  return {
    'max_new_tokens': evaluated_tokens(config),
    'temperature': sampling_of(config).temperature,
    'transforms': [repr(t) for t in sampling_of(config).transforms],
  }


def _plain(outcomes):
  """Lists of texts, or of numbers: null where a response was not judged."""
  values = np.asarray(outcomes)
  if values.dtype.kind == 'f':
    values = values.astype(object)
    values[~np.isfinite(np.asarray(outcomes))] = None
  return values.tolist()


if __name__ == '__main__':
  configuration.run(main)
