"""World loved_motifs: proxy with single responses to which users react.

  python -m experiments.train --config=configs/worlds/loved_motifs.py
    --method=reaction_model --workdir=runs/love
HarmlessMotifs has labels of safety in place of reactions, and measures how many
samples are safe. configs/pipelines/rluf.py trains policies on all models.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import proxy
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.worlds import HarmlessMotifs, LovedMotifs


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/proxy.py with a response a prompt."""
  config = proxy.get_config(method)
  data = any(piece.from_data for _, piece in method.pieces())
  weights = {'outcome': float(data), 'loved': 0.0}
  task = LovedMotifs(num_train=2000, reward_weights=weights)
  if not data:
    task = HarmlessMotifs(
      num_train=2000, reward_weights=weights | {'harmless': 0.0}
    )
  rollout = config.rollout
  if data:
    rollout = dataclasses.replace(rollout, group_size=1)
  return dataclasses.replace(
    config,
    iterations=100,
    task=task,
    rollout=rollout,
    evaluation=EvaluationConfig(
      every=0 if data else 100, num_prompts=100, num_samples=4
    ),
  )
