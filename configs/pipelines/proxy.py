"""A reward model, then GRPO against it: the world proxy in two stages.

Command: python -m experiments.pipeline --pipeline=proxy --workdir=runs/proxy
Cost: about a minute on 2 CPU cores.
Expected (seed 0): the learned reward 1.09 at the end; the rule 0.32 halfway and
  then less, 0.14 at the end.
"""

from experiments.pipelines.stages import Stage


def get_stages() -> tuple[Stage, ...]:
  """Comparisons first, samples second."""
  config = '--config=configs/worlds/proxy.py'
  return (
    Stage(
      name='reward_model',
      flags=(config, '--method=reward_model', '--workdir={out}'),
    ),
    Stage(
      name='grpo',
      flags=(
        *(config, '--method=grpo', '--workdir={out}'),
        "--add=reward_models=RewardModel(path='{reward_model}')",
      ),
    ),
  )
