"""Requests answered by calls, by a decoder of 83,000 parameters.

  python -m experiments.sft --config=configs/worlds/function_calls.py
    --steps=100 --learning_rate=1e-3 --max_prompt_tokens=10
    --max_response_tokens=33 --out=runs/calls_start
  python -m experiments.train --config=configs/worlds/function_calls.py
    --method=toolrl --set=model.path=runs/calls_start --workdir=runs/calls
Cost: about a minute each on 2 CPU cores.
Expected: greedy accuracy 0.13 of the start; after 100 iterations, five seeds,
  0.28 [0.06, 0.50] with ToolRL's reward and 0.00 in all seeds with
  task.granularity=coarse, whose rows are nearly never right, so that responses
  lose all but the form. --method=grpo@token_mean, on the outcome only, ends at
  0.00 in three seeds and at 0.20 in two; ToolRL less it 0.20 [-0.02, 0.42].
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import FunctionCalls


def get_config(method: Method) -> ExperimentConfig:
  """256 responses an iteration."""
  return ExperimentConfig(
    iterations=100,
    task=FunctionCalls(),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      )
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=10,
      max_response_tokens=33,
    ),
    update=UpdateConfig(minibatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=256),
    verifier=VerifierConfig(num_workers=0),
  )
