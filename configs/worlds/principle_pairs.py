"""World principle_pairs: which of two texts meets the rubric of a topic better.

  python -m experiments.train --config=configs/worlds/principle_pairs.py
    --method=sft --set=rollout.recorded_prompts=64 --set=rollout.num_prompts=64
    --set=rollout.group_size=1 --set=iterations=600
    --set=optimizer.learning_rate=2e-3 --workdir=runs/principle_pairs
configs/pipelines/openrubrics.py trains a generator of rubrics and a judge.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import PrinciplePairs


def get_config(method: Method) -> ExperimentConfig:
  """32 questions x 8 answers of a token, or rubrics of two."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    task=PrinciplePairs(),
    rollout=dataclasses.replace(
      config.rollout, max_prompt_tokens=16, max_response_tokens=4
    ),
    evaluation=EvaluationConfig(every=100, num_prompts=300),
  )
