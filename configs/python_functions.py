"""A model writes Python functions; hidden tests in a sandbox are the reward.

  python -m experiments.import_weights --source=SmolLM2-135M-Instruct.gguf
    --out=models/smollm2
  python -m experiments.train --config=configs/python_functions.py
    --method=grpo --set=task.path=data/python_functions.jsonl
    --workdir=runs/python

Rows: see rl_jax/tasks/python_function.py. Needs Linux; what the sandbox blocks
and what it cannot: rl_jax/verification/sandbox/python_calls.py
(`make test-attacks`).
Cost: a sandbox takes 0.05 to 0.1 seconds of a core a sample. Expected numbers:
not measured. To reward the share of passed tests instead of all or nothing:
--set="task.reward_weights={'passed': 1.0}".
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import ChatTemplate, PythonFunction
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """16 prompts x 8 samples of at most 192 tokens."""
  return ExperimentConfig(
    iterations=100,
    task=PythonFunction(
      path='data/python_functions.jsonl',
      template=ChatTemplate(),
      num_validation=32,
    ),
    method=method,
    model=ModelSource(path='models/smollm2'),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=256,
      max_response_tokens=192,
    ),
    update=UpdateConfig(microbatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-5, warmup_steps=3),
    evaluation=EvaluationConfig(every=0, num_prompts=32),
    verifier=VerifierConfig(num_workers=2, timeout_seconds=20.0),
  )
