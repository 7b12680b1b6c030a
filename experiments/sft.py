"""Supervised warm start: on a task's own targets, or on a file of responses.

python -m experiments.sft --config=configs/worlds/arithmetic.py
  --stop_accuracy=0.45 --out=runs/warm
python -m experiments.sft --model=smollm2 --data=pairs.jsonl --steps=200
  --learning_rate=1e-5 --out=runs/sft

--data takes the forms of tasks.PreferenceRows: {prompt, completion or
response}, {messages}, and of pairs and scored responses the first one. Of
conversations the assistant's turns are trained. Labels are ignored. It is
the method sft in the loop of train, whose --set it has, as
--set=optimizer.schedule=cosine or --set=model.lora_rank=16.

The result, a model directory, is written to --out; curves and checkpoints to
--out with `.work` appended, a work directory as that of train. Run it again to
continue after Ctrl-C.
"""

import dataclasses
import os

from absl import flags, logging

from experiments.flags import configuration, fields, outputs
from rl_jax import overrides
from rl_jax.config import EvaluationConfig, ExperimentConfig, StoppingConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.models.files import directories, model_dir
from rl_jax.records import metrics
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.runs.loop import Trainer
from rl_jax.tasks import PreferenceRows

ACCURACY = 'evaluation/pass_at_1'

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is used.'
)
_SET = flags.DEFINE_multi_string(
  'set', [], 'PATH=LITERAL: a field of --config or of the run, as in train.'
)
_DATA = flags.DEFINE_string(
  'data', None, 'Rows with prompt and response, in JSONL, CSV or Parquet.'
)
_MODEL = flags.DEFINE_string('model', None, 'Model to start from.')
_OUT = flags.DEFINE_string(
  'out', None, 'Model directory to write.', required=True
)
_STEPS = flags.DEFINE_integer(
  'steps', 4000, 'Maximum number of steps.', lower_bound=1
)
_STOP = flags.DEFINE_float(
  'stop_accuracy', None, 'Stop at this greedy validation accuracy.'
)
_EVERY = flags.DEFINE_integer(
  'evaluate_every', 100, 'Steps between evaluations.', lower_bound=1
)
_BATCH = flags.DEFINE_integer(
  'batch_size', 128, 'Pairs per step.', lower_bound=1
)
_MICRO = flags.DEFINE_integer(
  'microbatches', 1, 'Of a batch; more need less memory.', lower_bound=1
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
  if _BATCH.value % _MICRO.value:
    raise ValueError(
      f'--microbatches={_MICRO.value} must divide --batch_size={_BATCH.value}'
    )
  # The run could not be continued.
  outputs.check_not_source('model', _MODEL.value, _OUT.value)
  if _DATA.value is not None and _MODEL.value is None:
    raise ValueError('--data needs --model: the model to start from')
  directories.check_replaceable(_OUT.value)


def config_of_flags() -> ExperimentConfig:
  """The run that the flags describe; --set counts most."""
  # Of --data only the shape of a configuration is used.
  name = 'bandit' if _CONFIG.value is None else _CONFIG.value
  config = configuration.supervised(
    configuration.build(name, 'sft'), _BATCH.value
  )
  task, source = config.task, config.model
  if _DATA.value is not None:
    task = PreferenceRows(path=_DATA.value)
  if _MODEL.value is not None:
    source = dataclasses.replace(source, path=_MODEL.value)
  config = dataclasses.replace(
    config,
    task=task,
    model=source,
    seed=_SEED.value,
    iterations=_STEPS.value,
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=_PROMPT.value,
      max_response_tokens=_RESPONSE.value,
    ),
    update=UpdateConfig(microbatch_prompts=_BATCH.value // _MICRO.value),
    optimizer=OptimizerConfig(
      learning_rate=_RATE.value, warmup_steps=_WARMUP.value, b2=0.99
    ),
    evaluation=EvaluationConfig(every=_EVERY.value, num_prompts=256),
    checkpoint=CheckpointConfig(every=_EVERY.value, keep_best=0),
    stopping=StoppingConfig(metric=ACCURACY, patience=None, target=_STOP.value),
  )
  config = configuration.changed(config, fields.once(_SET.value))
  stopping = config.stopping
  ends = (stopping.target, stopping.patience) != (None, None)
  if stopping.metric == ACCURACY and not ends:
    # Nothing waits for it, and a run without evaluations lacks it.
    config = overrides.override(config, 'stopping.metric', 'null')
  split = config.evaluation.split
  if split is not None and not config.task.num_prompts(split):
    config = overrides.override(config, 'evaluation.split', 'train')
  return config


def main(argv):
  """Checks the flags, trains, writes the model."""
  del argv
  check_flags()
  logging.set_verbosity(logging.INFO)
  workdir = os.path.normpath(_OUT.value) + '.work'
  trainer = Trainer(config_of_flags(), workdir, take_over=_TAKE_OVER.value)
  row = trainer.run()
  policy = trainer.parts.policy
  params = {**policy.frozen, **trainer.state.params}
  model_dir.save_model(_OUT.value, policy.model, params, policy.tokenizer)
  rows = metrics.read_jsonl(os.path.join(workdir, metrics.METRICS))
  evaluated = [found for found in rows if ACCURACY in found]
  line = f'{_OUT.value}: {row["step"]} steps, nll {row["train/nll"]:.3f}'
  if evaluated:
    last = evaluated[-1]
    line += f', greedy accuracy {last[ACCURACY]:.3f} after {last["step"]}'
  print(line)


if __name__ == '__main__':
  configuration.run(main)
