"""Supervised warm start: on a task's own targets, or on a file of responses.

python -m experiments.sft --config=configs/arithmetic.py --stop_accuracy=0.45
  --out=runs/warm
python -m experiments.sft --model=smollm2 --data=pairs.jsonl --steps=200
  --learning_rate=1e-5 --out=runs/sft

--data takes the forms of tasks.PreferenceRows: {prompt, completion or
response}, {messages}, and of pairs and scored responses the first one. Of
conversations the assistant's turns are trained. --set=mesh.fsdp=8 sets the
mesh, as in train.

The result, a model directory, is written to --out; curves and checkpoints to
--out with `.work` appended. Run it again to continue after Ctrl-C.
"""

import dataclasses
import functools
import os

from absl import flags, logging
import jax

from experiments.flags import configuration
from rl_jax.checks import INT32
from rl_jax.config import EvaluationConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models.files import model_dir
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import TextVerifier
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import Evaluator
from rl_jax.runs.supervised import SupervisedTrainer
from rl_jax.runs.supervised_fit import FitConfig, fit
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import PreferenceRows
from rl_jax.verification.pool import VerifierPool

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is used.'
)
_SET = flags.DEFINE_multi_string(
  'set', [], 'PATH=LITERAL: a field of --config, or of model or mesh.'
)
_DATA = flags.DEFINE_string(
  'data', None, 'Rows with prompt and response, in JSONL or Parquet.'
)
_MODEL = flags.DEFINE_string('model', None, 'Model to start from.')
_OUT = flags.DEFINE_string(
  'out', None, 'Model directory to write.', required=True
)
_STEPS = flags.DEFINE_integer('steps', 4000, 'Maximum number of steps.')
_STOP = flags.DEFINE_float(
  'stop_accuracy', float('inf'), 'Stop at this greedy validation accuracy.'
)
_EVERY = flags.DEFINE_integer(
  'evaluate_every', 100, 'Steps between evaluations.'
)
_BATCH = flags.DEFINE_integer('batch_size', 128, 'Pairs per step.')
_MICRO = flags.DEFINE_integer(
  'microbatches', 1, 'Of a batch; more need less memory.'
)
_RATE = flags.DEFINE_float('learning_rate', 1e-3, 'Peak learning rate.')
_WARMUP = flags.DEFINE_integer('warmup_steps', 50, 'Linear warm-up.')
_PROMPT = flags.DEFINE_integer(
  'max_prompt_tokens', 256, 'A longer prompt is an error.'
)
_RESPONSE = flags.DEFINE_integer(
  'max_response_tokens', 64, 'A longer one is an error.'
)
_SEED = flags.DEFINE_integer(
  'seed',
  0,
  'Of the order of pairs and of new weights.',
  lower_bound=-(2**63),
  upper_bound=2**63 - 1,
)

_TAKE_OVER = flags.DEFINE_bool(
  'take_over', False, 'Write where the lock names another run, now ended.'
)


def check_flags() -> None:
  """Raises ValueError for flags that do not go together."""
  if (_CONFIG.value is None) == (_DATA.value is None):
    raise ValueError('give exactly one of --config and --data')
  if _DATA.value is not None and _SET.value:
    raise ValueError('--set needs --config: it changes one of its fields')
  if _MICRO.value < 1 or _BATCH.value % _MICRO.value:
    raise ValueError(
      f'--microbatches={_MICRO.value} must divide --batch_size={_BATCH.value}'
    )
  tokens = _BATCH.value * (_PROMPT.value + _RESPONSE.value)
  if tokens > INT32:
    raise ValueError(
      f'--batch_size={_BATCH.value} with {_PROMPT.value} tokens of a prompt '
      f'and {_RESPONSE.value} of a response: {tokens} tokens, more than {INT32}'
    )
  if _DATA.value is not None and _MODEL.value is None:
    raise ValueError('--data needs --model: the model to start from')


def main(argv):
  """Checks the flags, trains, writes the model."""
  del argv
  check_flags()
  logging.set_verbosity(logging.INFO)
  # Of --data only the fields of model and mesh are used.
  name = 'bandit' if _CONFIG.value is None else _CONFIG.value
  config = configuration.build(name, 'reinforce', _SET.value)
  mesh = mesh_lib.make_mesh(config.mesh)
  jax.set_mesh(mesh)
  task, source = config.task, config.model
  if _DATA.value is not None:
    task = PreferenceRows(path=_DATA.value)
  if _MODEL.value is not None:
    source = dataclasses.replace(source, path=_MODEL.value)
  policy = policy_lib.load(source, task, _SEED.value, mesh)
  trainer = SupervisedTrainer(
    policy,
    OptimizerConfig(
      learning_rate=_RATE.value, warmup_steps=_WARMUP.value, b2=0.99
    ),
    mesh,
    microbatches=_MICRO.value,
    seed=_SEED.value,
  )
  fit_config = FitConfig(
    batch_size=_BATCH.value,
    max_steps=_STEPS.value,
    stop_accuracy=_STOP.value,
    evaluate_every=_EVERY.value,
    max_response_tokens=_RESPONSE.value,
  )
  prompts = PromptSet(task, 'train', policy.tokenizer, _PROMPT.value)
  with VerifierPool(task) as verifier:
    row = fit(
      trainer,
      prompts,
      fit_config,
      os.path.normpath(_OUT.value) + '.work',
      evaluation(policy, task, verifier, mesh),
      seed=_SEED.value,
      take_over=_TAKE_OVER.value,
    )
  model_dir.save_model(
    _OUT.value, policy.model, trainer.params, policy.tokenizer
  )
  print(
    f'{_OUT.value}: {row["step"]} steps, nll {row["train/nll"]:.3f}, greedy '
    f'accuracy {row["evaluation/pass_at_1"]:.3f}'
  )


def evaluation(policy, task, verifier, mesh):
  """params -> greedy metrics on validation, or on train if there is none."""
  split = 'validation' if task.num_prompts('validation') else 'train'
  evaluator = Evaluator(
    functools.partial(
      make_engine, policy.model, max_response_tokens=_RESPONSE.value, mesh=mesh
    ),
    PromptSet(task, split, policy.tokenizer, _PROMPT.value),
    TextVerifier(verifier),
    EvaluationConfig(num_prompts=256),
  )
  return lambda params: evaluator.run(params)[0]


if __name__ == '__main__':
  configuration.run(main)
