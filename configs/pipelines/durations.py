"""Durations: advantages that undo what a clock does to episodes, or do not.

An untrained policy learns 60 iterations of PPO on two tools, of which the slow
one is always right, from the episodes that a collector with a time limit
finishes: with the weight by durations after the clock, without it, and from all
episodes.
Command: python -m experiments.pipeline --pipeline=durations
  --workdir=runs/durations
Cost: about one minute of a CPU core.
Claims: with the weight the slow tool is called more often and more answers are
  right than without it, by the means of the last ten iterations.
Expected: see experiments/papers/worlds/README.md.
Source: "Reinforcement Learning for Machine Learning Engineering Agents", 2025,
  reconstructed.
"""

from experiments.pipelines.stages import Stage

METHODS = {
  'weighted': 'duration_ppo@by_time',
  'unweighted': 'duration_ppo@by_time_unweighted',
  'all_episodes': 'ppo',
}


def get_stages() -> tuple[Stage, ...]:
  """A policy for each method."""
  return tuple(
    Stage(
      name=name,
      flags=(
        *('--config=configs/worlds/priced_tools.py', '--workdir={out}'),
        *(f'--method={method}', '--set=model.value_head=True'),
      ),
    )
    for name, method in METHODS.items()
  )
