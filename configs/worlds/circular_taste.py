"""World circular_taste: a judge of pairs prefers in a circle.

  python -m experiments.train --config=configs/worlds/circular_taste.py
    --method=nash_md --workdir=runs/circular_taste
  (--config=configs/worlds/circular_taste.py@scores: a score of each response,
  its mean preference)
configs/pipelines/circular_taste.py compares methods.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.judge_source import Judge
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import CircularTaste, circular_taste

_JUDGE = 'rl_jax.worlds.circular_taste'
VARIANTS = {
  'scores': (
    f'judges.0.template={circular_taste.ONE!r}',
    f"judges.0.function='{_JUDGE}:mean_preference'",
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """Six prompts x 16 samples of one letter."""
  return ExperimentConfig(
    iterations=300,
    task=CircularTaste(),
    method=method,
    model=ModelSource(
      config=presets.small(num_layers=1, width=32, head_size=16, mlp_size=64),
      value_head=method.reads_values,
    ),
    judges=(
      Judge(template=circular_taste.PAIRS, function=f'{_JUDGE}:preference'),
    ),
    rollout=RolloutConfig(
      num_prompts=6,
      group_size=16,
      max_prompt_tokens=2,
      max_response_tokens=2,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=0),
  )
