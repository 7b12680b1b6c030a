"""World rubric_topics: five letters a topic, which criteria may show.

  python -m experiments.train --config=configs/worlds/rubric_topics.py
    --method=rusca_rl --set=model.path=runs/rusca_rl/warm
    --workdir=runs/rubric_topics
configs/pipelines/rusca_rl.py makes the start and compares methods.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import RubricTopics


def get_config(method: Method) -> ExperimentConfig:
  """32 topics x 8 samples of at most 6 tokens."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    task=RubricTopics(),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=14, max_response_tokens=6
    ),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=32, num_samples=16
    ),
  )
