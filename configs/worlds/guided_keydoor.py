"""World guided_keydoor: KeyDoor with sub-goals of an adviser, hands hidden.

  python -m experiments.train --config=configs/worlds/guided_keydoor.py
    --method=turn_rloo --workdir=runs/guided
configs/pipelines/rladapter.py has an adviser that learns between rounds.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import keydoor
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.worlds import GuidedKeyDoor


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/keydoor.py with 12 turns and a model of one layer."""
  config, turns = keydoor.get_config(method), 12
  return dataclasses.replace(
    config,
    iterations=20,
    task=GuidedKeyDoor(num_train=200),
    model=ModelSource(
      config=presets.small(
        num_layers=1,
        width=32,
        num_heads=2,
        num_kv_heads=2,
        head_size=16,
        mlp_size=64,
      ),
      value_head=method.reads_values,
    ),
    rollout=dataclasses.replace(
      config.rollout,
      max_response_tokens=5 * turns,
      turns=dataclasses.replace(config.rollout.turn_limits, max_turns=turns),
    ),
    optimizer=dataclasses.replace(config.optimizer, learning_rate=3e-3),
    evaluation=EvaluationConfig(every=20, num_prompts=64),
  )
