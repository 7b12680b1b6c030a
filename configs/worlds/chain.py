"""World chain: 4 to 8 operations, thought step by step, by 130,000 weights.

  python -m experiments.sft --config=configs/worlds/chain.py
    --set=task.num_train=100000 --set=task.guesses=0.4 --set=task.slips=0.12
    --set=task.hints=0.25 --steps=1500 --learning_rate=2e-3
    --max_prompt_tokens=32 --max_response_tokens=52 --evaluate_every=250
    --out=runs/chain_warm
  python -m experiments.train --config=configs/worlds/chain.py --method=grpo
    --set=model.path=runs/chain_warm --workdir=runs/chain
Cost: about 7 minutes for the first command, one for the second, on 2 CPU cores.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.worlds import Chain


def get_config(method: Method) -> ExperimentConfig:
  """32 prompts x 8 samples, two optimizer steps a rollout."""
  return ExperimentConfig(
    iterations=40,
    task=Chain(),
    method=method,
    model=ModelSource(config=presets.small(max_positions=96)),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=8,
      max_prompt_tokens=32,
      max_response_tokens=52,
    ),
    update=UpdateConfig(minibatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(
      every=10, num_prompts=128, num_samples=4, batch_prompts=128
    ),
  )
