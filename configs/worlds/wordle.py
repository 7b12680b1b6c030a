"""World wordle: a word of four letters is guessed in six turns.

  python -m experiments.train --config=configs/worlds/wordle.py
    --method=turn_ppo --set=model.value_head=True
    --set=model.path=runs/lmrl/wordle_bc --workdir=runs/wordle
(--config=configs/worlds/wordle.py@recorded: a player whose guesses are random
in half of the turns)
configs/pipelines/lmrl.py makes the start and compares methods.
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Wordle

_TURNS, _WORD, _MARKS = 6, 4, 5
VARIANTS = {
  'recorded': (
    'task=RecordedWalks(task=Wordle(num_train=2000), noise=0.5, turns=6, '
    'num_recorded=1, turn_ends=False)',
    'rollout.num_prompts=64',
    'rollout.recorded_prompts=64',
    'rollout.group_size=1',
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration."""
  return ExperimentConfig(
    iterations=60,
    task=Wordle(),
    method=method,
    model=ModelSource(
      config=presets.small(num_heads=4, head_size=16),
      value_head=method.reads_values,
    ),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=8,
      max_prompt_tokens=2,
      max_response_tokens=_TURNS * (_WORD + _MARKS),
      turns=TurnConfig(
        max_turns=_TURNS,
        max_turn_tokens=_WORD,
        max_observation_tokens=_MARKS,
      ),
    ),
    optimizer=OptimizerConfig(learning_rate=3e-4),
    evaluation=EvaluationConfig(every=0, num_prompts=100, num_samples=4),
    verifier=VerifierConfig(num_workers=0),
  )
