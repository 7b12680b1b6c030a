"""Questions to a corpus that BM25 searches, by a decoder of 84,000 parameters.

Begins with a clone of recorded walks, of whose actions half are random; from
random weights a policy learns to search and never to answer.
Command: python -m experiments.train --config=configs/worlds/searched.py
    --method=sft
    --set="task=RecordedWalks(task=SearchedFacts(),noise=0.5,turns=4)"
    --set=iterations=150 --set=rollout.recorded_prompts=16
    --set=update.minibatch_prompts=16 --set=optimizer.learning_rate=3e-3
    --workdir=runs/searched_start
  python -m experiments.train --config=configs/worlds/searched.py
    --method=grpo@no_kl --set=model.path=runs/searched_start
    --workdir=runs/searched
Cost: about a minute of a CPU core each. Needs the extra 'search'.
Expected: over five seeds 0.99 of the last ten iterations' answers are right; at
  a rate of 1e-2 0.05, and 0.15 with LLDS (experiments/papers/episodes).
"""

import dataclasses

from configs.worlds import lookup
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.worlds import SearchedFacts


def get_config(method: Method) -> ExperimentConfig:
  """128 episodes an iteration, of at most 4 turns."""
  config = lookup.get_config(method)
  return dataclasses.replace(
    config,
    iterations=100,
    task=SearchedFacts(reward_weights={'outcome': 0.5, 'found': 0.5}),
    rollout=dataclasses.replace(
      config.rollout,
      max_prompt_tokens=3,
      max_response_tokens=28,
      turns=TurnConfig(
        max_turns=4, max_turn_tokens=3, max_observation_tokens=4
      ),
    ),
  )
