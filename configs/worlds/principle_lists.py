"""World principle_lists: four texts that are scored by a principle at once.

  python -m experiments.train --config=configs/worlds/principle_lists.py
    --method=sft --set=rollout.recorded_prompts=64 --set=rollout.num_prompts=64
    --set=rollout.group_size=1 --set=iterations=300
    --set=optimizer.learning_rate=2e-3 --workdir=runs/principle_lists
configs/pipelines/reward_anything.py trains a judge, and policies by it.
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import PrincipleLists


def get_config(method: Method) -> ExperimentConfig:
  """32 lists x 8 objects of scores."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    iterations=40,
    task=PrincipleLists(),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=34, max_response_tokens=26
    ),
    evaluation=EvaluationConfig(every=40, num_prompts=300),
  )
