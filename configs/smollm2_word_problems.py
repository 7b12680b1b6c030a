"""SmolLM2-135M-Instruct on one-step word problems (MAWPS), on a CPU or a GPU.

  python -m experiments.import_weights --source=SmolLM2-135M-Instruct.gguf
    --out=models/smollm2
  python -m experiments.train --config=configs/smollm2_word_problems.py
    --method=grpo --workdir=runs/smollm2

Data: data/mawps_singleop.jsonl with fields input and target (another place:
--set="task.sources={'train': 'PATH'}"); its last 100 rows are held out. The
prompt shows four worked examples, the best of several for the untrained model;
a response ends with the line, and its last number is the answer.
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
from rl_jax.tasks import PlainTemplate, QuestionAnswer

PROMPT = """Question: Tom has 3 pens. He buys 5 more. How many pens has Tom?
Answer: 3 + 5 = 8

Question: Ann had 9 figs and ate 4. How many figs are left?
Answer: 9 - 4 = 5

Question: There are 6 bags with 7 nuts each. How many nuts are there?
Answer: 6 * 7 = 42

Question: 20 cards are split into groups of 4. How many groups are there?
Answer: 20 / 4 = 5

Question: {question}
Answer:"""


def get_config(method: Method) -> ExperimentConfig:
  """8 prompts x 16 samples of at most 16 tokens; all weights, float32."""
  return ExperimentConfig(
    iterations=40,
    task=QuestionAnswer(
      sources={'train': 'data/mawps_singleop.jsonl'},
      question='{input}',
      answer='{target}',
      template=PlainTemplate(text=PROMPT),
      extract='first_line_last_number',
      hold_out='last',
      num_test=100,
    ),
    method=method,
    model=ModelSource(path='models/smollm2'),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=16,
      max_prompt_tokens=256,
      max_response_tokens=16,
      temperature=0.7,
      stop=('\n',),
    ),
    update=UpdateConfig(microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=3e-5, warmup_steps=3),
    evaluation=EvaluationConfig(every=0, split='test', num_prompts=100),
    checkpoint=CheckpointConfig(every=5, keep_last=1, keep_best=0),
    verifier=VerifierConfig(num_workers=1, timeout_seconds=5.0),
  )
