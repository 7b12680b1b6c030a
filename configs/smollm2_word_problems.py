"""SmolLM2-135M-Instruct on one-step word problems (MAWPS), on a CPU or a GPU.

  python -m experiments.import_weights --source=SmolLM2-135M-Instruct.gguf
    --out=models/smollm2
  python -m experiments.papers.word_problems.equation_pairs
    --out=data/equations.jsonl
  python -m experiments.sft --model=models/smollm2 --data=data/equations.jsonl
    --batch_size=16 --steps=12 --evaluate_every=12 --learning_rate=3e-5
    --warmup_steps=3 --max_prompt_tokens=80 --max_response_tokens=24
    --out=models/smollm2_warm
  python -m experiments.train --config=configs/smollm2_word_problems.py
    --method=grpo --set=method.losses.KLPenalty=null --workdir=runs/smollm2

Data: data/mawps_singleop.jsonl with fields input and target (another place:
--set="task.sources={'train': 'PATH'}"); its last 100 rows are held out. The
short warm start teaches the form of an answer, one equation; a response ends
with the line, and its last number is the answer. A quotient as '12 / 4' is not
taken for 3; the expected numbers were measured when it was.
Cost and expected numbers: experiments/papers/word_problems/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import PlainTemplate, QuestionAnswer
from rl_jax.verification.pool import VerifierConfig

PROMPT = 'Question: {question}\nAnswer:'


def get_config(method: Method) -> ExperimentConfig:
  """16 prompts x 8 samples of at most 16 tokens; all weights, float32."""
  return ExperimentConfig(
    iterations=10,  # more do not help held-out rows
    task=QuestionAnswer(
      sources={'train': 'data/mawps_singleop.jsonl'},
      question='{input}',
      answer='{target}',
      template=PlainTemplate(text=PROMPT),
      extract='first_line_last_number',
      verifier='decimal',
      hold_out='last',
      num_test=100,
    ),
    method=method,
    model=ModelSource(path='models/smollm2_warm'),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=80,
      max_response_tokens=16,
      temperature=1.0,
      stop=('\n',),
    ),
    update=UpdateConfig(microbatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=1e-5, warmup_steps=3),
    evaluation=EvaluationConfig(every=0, split='test', num_prompts=100),
    checkpoint=CheckpointConfig(every=5, keep_last=1, keep_best=0),
    verifier=VerifierConfig(num_workers=1, timeout_seconds=5.0),
  )
