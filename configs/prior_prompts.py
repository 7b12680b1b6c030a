"""GSM8K with one of five instructions before the question.

  python -m experiments.train --config=configs/prior_prompts.py
    --method=grpo --set=model.path=models/NAME --workdir=runs/think
Other behaviours are variants: --config=configs/prior_prompts.py@examples, and
plan, code and knowledge. Half of the reward is the answer and half the form.
The control without an instruction is configs/gsm8k.py.
Data: as of configs/gsm8k.py; the paper trains a 7B model on STILLv3.
Cost: not measured.
Expected: not measured; models that fit here know no such tags. The pipeline
prior_prompts measures the behaviours with small models that learn them first.
"""

import dataclasses

from configs import gsm8k
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import ChatTemplate, RewardFunctions, prior_prompts

_MODULE = 'rl_jax.tasks.prior_prompts'
VARIANTS = {
  tag: (
    f'task.functions={{"{_MODULE}:{tag}": 0.5}}',
    f'task.task.template.user={prior_prompts.instruction(tag)!r}',
  )
  for tag in prior_prompts.BEHAVIOURS
}


def get_config(method: Method) -> ExperimentConfig:
  """configs/gsm8k.py with <think> before <answer>."""
  config = gsm8k.get_config(method)
  question = dataclasses.replace(
    config.task,
    extract='answer_tags',
    template=ChatTemplate(user=prior_prompts.instruction('think')),
  )
  task = RewardFunctions(question, {f'{_MODULE}:think': 0.5}, task_weight=0.5)
  return dataclasses.replace(config, task=task)
