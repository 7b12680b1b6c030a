"""World criticised_families: answers are criticised and written once more.

  python -m experiments.train --config=configs/worlds/criticised_families.py
    --method=critique_grpo --set=model.path=runs/critique_grpo/warm
    --workdir=runs/criticised_families
configs/pipelines/critique_grpo.py makes the start and compares methods.
Cost: about 40 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import CriticisedFamilies


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/families.py with room for a response in the prompt."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    task=CriticisedFamilies(),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=32, max_response_tokens=10
    ),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=300, num_samples=4
    ),
  )
