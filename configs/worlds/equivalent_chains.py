"""World equivalent_chains: family_chains with recorded groups beside samples.

  python -m experiments.train --config=configs/worlds/equivalent_chains.py
    --method=gepo@oorl_groups --set=model.path=runs/oorl/warm
    --workdir=runs/equivalent_chains
configs/pipelines/oorl.py makes the start and compares methods.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import family_chains
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import EquivalentChains


def get_config(method: Method) -> ExperimentConfig:
  """64 groups of 4 samples; data, where they are read, come on top."""
  config = family_chains.get_config(method)
  return dataclasses.replace(
    config,
    task=EquivalentChains(),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=80, recorded_prompts=16, group_size=4
    ),
  )
