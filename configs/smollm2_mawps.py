"""configs/smollm2_expressions.py on one-step word problems of MAWPS.

  python -m experiments.train --config=configs/smollm2_mawps.py
    --method=grpo --workdir=runs/mawps

Data: data/mawps_singleop.jsonl with fields input and target (another place:
--set="task.sources={'train': 'PATH'}"). 150 rows are held out, by the hash of
the question.
Cost and expected numbers: experiments/papers/word_problems/README.md.
"""

import dataclasses

from configs import smollm2_expressions
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import PlainTemplate, QuestionAnswer
from rl_jax.worlds.word_problems import EXPRESSION_SHOTS


def get_config(method: Method) -> ExperimentConfig:
  """The same settings, 40 iterations."""
  base = smollm2_expressions.get_config(method)
  return dataclasses.replace(
    base,
    iterations=40,
    rollout=dataclasses.replace(base.rollout, max_prompt_tokens=192),
    task=QuestionAnswer(
      sources={'train': 'data/mawps_singleop.jsonl'},
      question='{input}',
      answer='{target}',
      template=PlainTemplate(text=EXPRESSION_SHOTS),
      verifier='expression',
      hold_out='hash',
      num_test=150,
    ),
    evaluation=EvaluationConfig(
      every=10, split='test', num_prompts=150, batch_prompts=50
    ),
  )
