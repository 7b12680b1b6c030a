"""GSM8K for models of half a billion parameters on one accelerator.

  python -m experiments.train --config=configs/gsm8k.py --method=dapo
    --set=model.path=models/NAME --workdir=runs/gsm8k
The configurations named after a model are this one with its sizes.
Data: data/gsm8k_train.jsonl and data/gsm8k_test.jsonl as released.
Cost and expected numbers: not measured yet.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import ChatTemplate, QuestionAnswer
from rl_jax.verification.pool import VerifierConfig

PROMPT = (
  '{question}\nThink step by step, then give the answer as a number after '
  "'####'."
)


def get_config(
  method: Method, model: str = 'models/model', preset: str | None = None
) -> ExperimentConfig:
  """32 prompts x 8 samples of at most 512 tokens, bfloat16 compute.

  preset: the sizes of the model, to plan with before its weights are there.
  """
  return ExperimentConfig(
    iterations=200,
    task=QuestionAnswer(
      sources={
        'train': 'data/gsm8k_train.jsonl',
        'test': 'data/gsm8k_test.jsonl',
      },
      gold='hash',
      extract='hash',
      verifier='decimal',
      template=ChatTemplate(user=PROMPT),
    ),
    method=method,
    model=ModelSource(
      path=model,
      config=presets.PRESETS[preset] if preset else None,
      compute_dtype='bfloat16',
      remat=True,
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=512,
      max_response_tokens=512,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(microbatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-6, warmup_steps=10),
    evaluation=EvaluationConfig(
      every=20, split='test', num_prompts=256, batch_prompts=256
    ),
    checkpoint=CheckpointConfig(every=10),
    verifier=VerifierConfig(num_workers=2, timeout_seconds=5.0),
  )
