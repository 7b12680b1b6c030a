"""Prints one JSON line with the accuracy of a policy.

python -m experiments.evaluate --checkpoint=runs/grpo --data=arithmetic
python -m experiments.evaluate --checkpoint=smollm2 --data=problems.jsonl
  --question='{input}' --answer='{target}' --num_samples=8 --limit=100

--checkpoint is a work directory of `train` (its newest valid checkpoint, or
that of --step), a model directory, a Hugging Face directory or a GGUF file.
--data is a configuration (configs/NAME.py or NAME), whose task is used, or a
JSONL file. pass_at_k is the unbiased estimator; --out has the outcome of each
row, for intervals.
"""

import functools
import json
import os

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration
from experiments.flags import processes as process_flags
from rl_jax.config import EvaluationConfig
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import TextVerifier
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import Evaluator
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate, PlainTemplate, QuestionAnswer
from rl_jax.verification.pool import VerifierPool

_CHECKPOINT = flags.DEFINE_string('checkpoint', None, 'Policy.', required=True)
_STEP = flags.DEFINE_integer('step', None, 'Iteration of a work directory.')
_DATA = flags.DEFINE_string(
  'data', None, 'Configuration or JSONL.', required=True
)
_SPLIT = flags.DEFINE_string('split', 'test', 'Split of the task.')
_QUESTION = flags.DEFINE_string('question', '{question}', 'From a JSONL row.')
_ANSWER = flags.DEFINE_string('answer', '{answer}', 'From a JSONL row.')
_GOLD = flags.DEFINE_string('gold', 'whole', "'hash' for GSM8K's ####.")
_TEMPLATE = flags.DEFINE_string('template', '{question}', 'Of the prompt.')
_CHAT = flags.DEFINE_bool(
  'chat', False, 'Apply the chat template to the prompt.'
)
_PREFILL = flags.DEFINE_string('prefill', '', 'Start of the response.')
_EXTRACT = flags.DEFINE_string('extract', 'last_number', 'Answer extraction.')
_VERIFIER = flags.DEFINE_string('verifier', 'number', 'number, math or text.')
_SAMPLES = flags.DEFINE_integer('num_samples', 0, 'Samples for pass@k.')
_NEW = flags.DEFINE_integer('max_new_tokens', 64, 'Per response.')
_PROMPT = flags.DEFINE_integer(
  'max_prompt_tokens', 512, 'A longer prompt is an error.'
)
_LIMIT = flags.DEFINE_integer('limit', 1000, 'Maximum number of rows.')
_BATCH = flags.DEFINE_integer('batch_prompts', 64, 'Prompts per batch.')
_TEMPERATURE = flags.DEFINE_float('temperature', 1.0, 'Of sampling.')
_STOP = flags.DEFINE_multi_string('stop', [], r'Text that ends a response.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of sampling.')
_WORKERS = flags.DEFINE_integer('num_workers', 1, 'Verifier processes.')
_OUT = flags.DEFINE_string(
  'out', None, 'JSON file for the outcome of each row.'
)
process_flags.define_flags()


def load_task():
  """The task that --data names."""
  if not _DATA.value.endswith('.jsonl'):
    method = configuration.load_method('reinforce')
    return configuration.load_config(_DATA.value, method).task
  if not os.path.exists(_DATA.value):
    raise ValueError(f'--data={_DATA.value}: no such file')
  template = (
    ChatTemplate(user=_TEMPLATE.value, prefill=_PREFILL.value)
    if _CHAT.value
    else PlainTemplate(text=_TEMPLATE.value)
  )
  return QuestionAnswer(
    sources={_SPLIT.value: _DATA.value},
    question=_QUESTION.value,
    answer=_ANSWER.value,
    gold=_GOLD.value,
    template=template,
    extract=_EXTRACT.value,
    verifier=_VERIFIER.value,
  )


def main(argv):
  """Loads, samples, verifies, prints."""
  del argv
  process_flags.start()
  task = load_task()
  mesh = mesh_lib.make_mesh(MeshConfig(data=jax.device_count()))
  jax.set_mesh(mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(
    _CHECKPOINT.value, mesh, _STEP.value
  )
  prompts = PromptSet(task, _SPLIT.value, tokenizer, _PROMPT.value)
  with VerifierPool(task, _WORKERS.value) as verifier:
    evaluator = Evaluator(
      functools.partial(
        make_engine, model, max_response_tokens=_NEW.value, mesh=mesh
      ),
      prompts,
      TextVerifier(verifier),
      EvaluationConfig(
        num_prompts=_LIMIT.value,
        num_samples=_SAMPLES.value,
        batch_prompts=min(_BATCH.value, _LIMIT.value, len(prompts)),
      ),
      temperature=_TEMPERATURE.value,
      stop=tuple(map(configuration.unescaped, _STOP.value)),
      seed=_SEED.value,
    )
    found, rows = evaluator.run(params)
  if not processes.is_main():
    return
  if _OUT.value:
    with open(_OUT.value, 'w') as file:
      json.dump({k: np.asarray(v).tolist() for k, v in rows.items()}, file)
  print(json.dumps({'checkpoint': _CHECKPOINT.value, **found}))


if __name__ == '__main__':
  configuration.run(main)
