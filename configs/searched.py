"""Questions to a corpus that BM25 searches, by a decoder of 84,000 parameters.

Begins with a clone of recorded walks, of whose actions half are random; from
random weights a policy learns to search and never to answer.
Command: python -m experiments.train --config=configs/searched.py --method=sft
    --set="task=RecordedWalks(task=SearchedFacts(),noise=0.5,turns=4)"
    --set=iterations=150 --set=rollout.logged_prompts=16
    --set=update.minibatch_prompts=16 --set=optimizer.learning_rate=3e-3
    --workdir=runs/searched_start
  python -m experiments.train --config=configs/searched.py
    --method=grpo@no_kl --set=model.path=runs/searched_start
    --workdir=runs/searched
Cost: about a minute of a CPU core each. Needs the extra 'search'.
Expected: over five seeds 0.99 of the last ten iterations' answers are right; at
  a rate of 1e-2 0.05, and 0.15 with LLDS (experiments/papers/episodes).
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.rollouts.turns import TurnConfig
from rl_jax.tasks import SearchedFacts
from rl_jax.verification.pool import VerifierConfig


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 4 turns."""
  turns = 4
  return ExperimentConfig(
    iterations=100,
    task=SearchedFacts(reward_weights={'outcome': 0.5, 'found': 0.5}),
    method=method,
    model=ModelSource(
      config=presets.small(
        num_heads=4, num_kv_heads=4, head_size=16, mlp_size=128
      ),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=3,
      max_response_tokens=28,
      turns=TurnConfig(
        max_turns=turns, max_turn_tokens=3, max_observation_tokens=4
      ),
    ),
    update=UpdateConfig(minibatch_prompts=4),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=64),
    verifier=VerifierConfig(num_workers=0),
  )
