"""World thought_calls: calls of functions after a thought, with decoys.

  python -m experiments.train --config=configs/worlds/thought_calls.py
    --method=sft --set=rollout.recorded_prompts=64 --set=rollout.num_prompts=64
    --set=rollout.group_size=1 --set=iterations=150
    --set=optimizer.learning_rate=2e-3 --workdir=runs/thought_calls
configs/pipelines/egpo.py makes a start and compares methods.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import function_calls
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.tasks import TextSpans
from rl_jax.worlds import ThoughtCalls, thought_calls


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/function_calls.py; thoughts are marked."""
  config = function_calls.get_config(method)
  task = TextSpans(
    ThoughtCalls(), think=('=', thought_calls.MARK), segments=(), opened=True
  )
  return dataclasses.replace(
    config,
    iterations=40,
    task=task,
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=15, max_response_tokens=44
    ),
    evaluation=EvaluationConfig(every=40, num_prompts=300, num_samples=4),
  )
