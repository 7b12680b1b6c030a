"""Trains a small model by RL on a CPU, and compares with supervised training.

  1 warm start    supervised, until 45% greedy on the validation split
  2 GRPO          from the warm start, without its KL term
  3 comparison    supervised training continued for the seconds that 2 took
  4 a table over the held-out split, and curves as a picture

python -m experiments.quickstart --workdir=runs/quickstart
Ctrl-C saves; run it again to continue. `make quickstart` installs first.
"""

import dataclasses
import os
import time
from typing import Any

from absl import flags, logging
import jax

from experiments.flags import configuration
from experiments.tables import quickstart as quickstart_table
from experiments.tables import stages
from rl_jax import overrides
from rl_jax.config import EvaluationConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models.files import model_dir
from rl_jax.pieces.regularizers import KLPenalty
from rl_jax.records import metrics
from rl_jax.records.checkpoints import checkpointer, files
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.verifiers import TextVerifier
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.loop import Trainer
from rl_jax.runs.supervised import SupervisedTrainer
from rl_jax.runs.supervised_fit import FitConfig, fit
from rl_jax.verification.pool import VerifierPool

_WORKDIR = flags.DEFINE_string(
  'workdir', 'runs/quickstart', 'Directory to write.'
)
_SEED = flags.DEFINE_integer('seed', 0, 'Seed.')
_METHOD = flags.DEFINE_string('method', 'grpo', 'Method of stage 2.')
_SET = flags.DEFINE_multi_string('set', [], 'Changes of stage 2, PATH=VALUE.')

WARM_START = FitConfig(
  batch_size=64,
  max_steps=4000,
  stop_accuracy=0.45,
  evaluate_every=50,
  max_response_tokens=6,
)
WARM_OPTIMIZER = OptimizerConfig(
  learning_rate=1e-3, warmup_steps=100, b2=0.99, clip_norm=1.0
)
ITERATIONS = 220


def main(argv):
  """Runs the stages that are not done yet, then prints the table."""
  del argv
  logging.set_verbosity(logging.INFO)
  started = time.perf_counter()
  job = Quickstart(_WORKDIR.value, _SEED.value, _METHOD.value, _SET.value)
  rows = job.run()
  quickstart_table.show(rows)
  with open(job.path('table.md'), 'w') as file:
    file.write(quickstart_table.markdown(rows))
  picture = quickstart_table.plot_stages(job.workdir)
  print(
    f'{time.perf_counter() - started:.0f} s in this session; curves in '
    f'{picture}, numbers in {job.path("table.json")}'
  )


class Quickstart:
  """The stages in one work directory; each is skipped once it is done."""

  def __init__(self, workdir: str, seed: int, method: str, sets: list[str]):
    self.workdir, self.seed = workdir, seed
    files.check_directory(workdir)
    config = configuration.build('arithmetic', method)
    config = dataclasses.replace(
      config,
      seed=seed,
      iterations=ITERATIONS,
      evaluation=EvaluationConfig(every=20, num_prompts=500, batch_prompts=500),
    )
    if _has_reference(config):  # its passes would cost a quarter of the time
      config = overrides.override(config, 'method.losses.KLPenalty', 'null')
    self.config = config = configuration.changed(config, sets)
    self.mesh = assembly.prepare(config)
    os.makedirs(workdir, exist_ok=True)
    jax.set_mesh(self.mesh)
    self.verifier = VerifierPool(config.task)

  def path(self, name: str) -> str:
    """A file of the work directory."""
    return os.path.join(self.workdir, name)

  def run(self) -> list[dict[str, Any]]:
    """Rows of the table, in order of the stages."""
    return [
      self._stage('untrained', self._untrained),
      self._stage('warm start', self._warm_start),
      self._stage('RL', self._reinforce),
      self._stage('supervised, as long as RL', self._continue),
    ]

  def _stage(self, name, function):
    return stages.once(self.path('table.json'), name, function)

  def _policy(self, source=None):
    model = dataclasses.replace(self.config.model, path=source)
    return policy_lib.load(model, self.config.task, self.seed, self.mesh)

  def _held_out(self, policy):
    """Greedy and 8 samples on 500 held-out pairs, and tokens per second."""
    evaluation = EvaluationConfig(
      split='test', num_prompts=500, num_samples=8, batch_prompts=500
    )
    config = dataclasses.replace(self.config, evaluation=evaluation)
    evaluator = assembly.make_evaluator(
      config, policy, TextVerifier(self.verifier), self.mesh
    )
    evaluator.run(policy.params)  # compiles
    started = time.perf_counter()
    found, _ = evaluator.run(policy.params)
    seconds = time.perf_counter() - started
    tokens = found['n'] * (found['length'] + 8 * found['sample_length'])
    return found | {'tokens_per_second': tokens / seconds}

  def _untrained(self):
    return self._held_out(self._policy())

  def _supervised(self, policy, optimizer=WARM_OPTIMIZER):
    return SupervisedTrainer(policy, optimizer, self.mesh, seed=self.seed)

  def _prompts(self, policy):
    limit = self.config.rollout.max_prompt_tokens
    return PromptSet(self.config.task, 'train', policy.tokenizer, limit)

  def _validation(self, policy):
    """params -> metrics on the validation split."""
    evaluator = assembly.make_evaluator(
      self.config, policy, TextVerifier(self.verifier), self.mesh
    )
    return lambda params: evaluator.run(params)[0]

  def _warm_start(self):
    policy = self._policy()
    trainer = self._supervised(policy)
    row = fit(
      trainer,
      self._prompts(policy),
      WARM_START,
      self.path('warm_start'),
      self._validation(policy),
      seed=self.seed,
    )
    trained = dataclasses.replace(policy, trainable=trainer.state.params)
    model_dir.save_model(
      self.path('warm_model'), policy.model, trained.params, policy.tokenizer
    )
    return self._held_out(trained) | _training(row)

  def _reinforce(self):
    model = dataclasses.replace(self.config.model, path=self.path('warm_model'))
    config = dataclasses.replace(self.config, model=model)
    trainer = Trainer(config, self.path('rl'))
    row = trainer.run()
    trained = dataclasses.replace(
      trainer.parts.policy, trainable=trainer.state.params
    )
    return self._held_out(trained) | _training(row)

  def _continue(self):
    """From the end of the warm start, at the learning rate of stage 2.

    At that of stage 1 training is unstable: accuracy of successive
    evaluations varies from 58% to 100%.
    """
    policy = self._policy()
    rate = self.config.optimizer.learning_rate
    optimizer = dataclasses.replace(WARM_OPTIMIZER, learning_rate=rate)
    trainer = self._supervised(policy, optimizer)
    warm = metrics.read_jsonl(self.path('warm_start/metrics.jsonl'))[-1]
    seconds = metrics.read_jsonl(self.path('rl/metrics.jsonl'))[-1][
      'time/wall_seconds'
    ]
    self._restore_warm(trainer)
    row = fit(
      trainer,
      self._prompts(policy),
      dataclasses.replace(
        WARM_START,
        max_steps=10**9,
        max_seconds=seconds,
        stop_accuracy=float('inf'),
        evaluate_every=200,
      ),
      self.path('supervised'),
      self._validation(policy),
      seed=self.seed,
      first_batch=warm['step'],
    )
    trained = dataclasses.replace(policy, trainable=trainer.state.params)
    return self._held_out(trained) | _training(row)

  def _restore_warm(self, trainer):
    """Parameters and optimizer state at the end of the warm start."""
    saver = checkpointer.Checkpointer(self.path('warm_start/checkpoints'))
    abstract = checkpointer.abstract_tree(trainer.state)
    trainer.state = saver.restore(abstract).tree
    saver.close()


def _has_reference(config):
  return any(isinstance(x, KLPenalty) for x in config.method.losses)


def _training(row):
  """What a stage cost: optimizer steps or iterations, and seconds."""
  seconds = row.get('time/train_seconds', row['time/wall_seconds'])
  return {'steps': row['step'], 'seconds': seconds}


if __name__ == '__main__':
  configuration.run(main)
