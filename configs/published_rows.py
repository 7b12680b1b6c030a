"""Rows as verl and TRL publish them, also with their reward functions.

  python -m experiments.train --config=configs/published_rows.py
    --set=model.path=models/NAME --workdir=runs/verl
  python -m experiments.train --config=configs/published_rows.py
    --set=model.path=models/NAME --reward=compute_score.py:compute_score
    --workdir=runs/verl_function
  python -m experiments.train --config=configs/published_rows.py@trl
    --set=model.path=models/NAME --reward=trl.rewards:accuracy_reward
    --workdir=runs/trl
Data: the Parquet files that verl's examples/data_preprocess/gsm8k.py writes, as
data/verl_gsm8k/train.parquet and test.parquet; or with @trl the folder
data/DeepMath of Parquet files with the columns prompt (turns) and solution, as
those of trl-lib/DeepMath-103K.
Other places are --set="task.sources={'train': 'PATH', 'test': 'PATH'}". Without
--reward the right answers of the rows count. A function of TRL's form is called
with one completion at a time.
Cost and expected numbers: not measured yet; tests/runs/test_published_data.py
runs small files of these forms.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import ChatTemplate, QuestionAnswer

VARIANTS = {
  'trl': (
    "task.sources={'train': 'data/DeepMath', 'test': 'data/DeepMath'}",
    'task.answer={solution}',
    'task.extract=boxed',
    'task.verifier=math',
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """The sizes of configs/gsm8k.py; prompts are conversations of the data."""
  config = gsm8k.get_config(method)
  task = QuestionAnswer(
    sources={
      'train': 'data/verl_gsm8k/train.parquet',
      'test': 'data/verl_gsm8k/test.parquet',
    },
    question='{prompt}',
    answer='{reward_model.ground_truth}',
    template=ChatTemplate(),
    extract='hash',
    verifier='decimal',
  )
  return dataclasses.replace(config, task=task)
