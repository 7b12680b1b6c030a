"""SmolLM2-135M-Instruct on one-step word problems (MAWPS), on a CPU or a GPU.

  python -m experiments.import_weights --source=SmolLM2-135M-Instruct.gguf
    --out=models/smollm2
  python -m experiments.train --config=configs/smollm2_word_problems.py
    --method=grpo --workdir=runs/smollm2

Data: data/mawps_singleop.jsonl with fields input and target (another place:
--set="task.sources={'train': 'PATH'}"); its last 100 rows are held out. The
chat turn of the assistant is opened by "The calculation is ", and the last
number of the first line is the answer.
Cost and expected numbers: BUILD_NOTES.md, "SmolLM2 on word problems".
"""

from rl_jax.config import (
  CheckpointConfig,
  EvaluationConfig,
  ExperimentConfig,
  ModelSource,
  RolloutConfig,
  UpdateConfig,
  VerifierConfig,
)
from rl_jax.method import Method
from rl_jax.optimizers import OptimizerConfig
from rl_jax.tasks import ChatTemplate, QuestionAnswer


def get_config(method: Method) -> ExperimentConfig:
  """8 prompts x 8 samples of 20 tokens, full fine-tuning in float32."""
  return ExperimentConfig(
    iterations=60,
    task=QuestionAnswer(
      sources={'train': 'data/mawps_singleop.jsonl'},
      question='{input}',
      answer='{target}',
      template=ChatTemplate(prefill='The calculation is '),
      extract='first_line_last_number',
      hold_out='last',
      num_test=100,
    ),
    method=method,
    model=ModelSource(path='models/smollm2'),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=8,
      max_prompt_tokens=128,
      max_response_tokens=20,
      temperature=0.9,
    ),
    update=UpdateConfig(microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=2e-5, warmup_steps=3),
    evaluation=EvaluationConfig(every=0, split='test', num_prompts=100),
    checkpoint=CheckpointConfig(every=5, keep_last=1, keep_best=0),
    verifier=VerifierConfig(num_workers=1, timeout_seconds=5.0),
  )
