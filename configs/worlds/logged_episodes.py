"""Recorded episodes of KeyDoor, by a decoder of 83,000 parameters.

Digi-Q: a weak policy cloned from the records, critics by temporal differences
from records, then the best of N of the policy's own actions in a state by these
critics; configs/pipelines/digi_q.py runs all stages and has the numbers. Rows
are recorded unless rollout.recorded_prompts says otherwise.
Command: python -m experiments.train --config=configs/worlds/logged_episodes.py
  --method=sft --workdir=runs/weak
Cost: about 20 seconds of a CPU core.
Expected: see configs/pipelines/digi_q.py.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import critic, presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import RecordedEpisodes


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, in groups of four."""
  task = RecordedEpisodes()
  values = method.reads_values
  return ExperimentConfig(
    iterations=200,
    task=task,
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=values,
      num_values=method.num_values,
      critic=critic.OWN if values else critic.SHARED,
    ),
    rollout=RolloutConfig(
      num_prompts=32,
      group_size=4,
      max_prompt_tokens=14,
      max_response_tokens=6 * task.turns - 4,
      recorded_prompts=32,
    ),
    update=UpdateConfig(minibatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=200),
    verifier=VerifierConfig(num_workers=0),
  )
