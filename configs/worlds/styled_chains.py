"""World styled_chains: rules on digits, answered after a behaviour in tags.

  python -m experiments.train --config=configs/worlds/styled_chains.py
    --method=sft --set=task.style=plan --set=rollout.recorded_prompts=64
    --set=rollout.num_prompts=64 --set=rollout.group_size=1
    --set=iterations=200 --set=optimizer.learning_rate=2e-3
    --workdir=runs/plan
configs/pipelines/prior_prompts.py compares the behaviours.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import family_chains
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import StyledChains


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples of at most 24 tokens, two rules."""
  config = family_chains.get_config(method)
  return dataclasses.replace(
    config,
    iterations=25,
    task=StyledChains(max_rules=2),
    rollout=dataclasses.replace(config.rollout, max_response_tokens=24),
    evaluation=EvaluationConfig(every=25, num_prompts=300, num_samples=4),
  )
