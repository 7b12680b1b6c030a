"""Parrot: fronts of the batch, with and without the name of a reward.

The policy learns from 150 steps of supervised training, then from 60 iterations
on two rewards, a right answer and the share of right digits: their weighted sum
(MO-GRPO over the batch), the front of the batch on that sum, and the front with
each sample counting for the reward that its prompt names.
Command: python -m experiments.pipeline --pipeline=parrot --workdir=runs/parrot
Cost: about two minutes of a CPU core.
Claim: both rewards of samples are higher with names and fronts than with the
  weighted sum.
Expected: see experiments/papers/worlds/README.md.
Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation", reconstructed; text, and no expansion of
  prompts.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/named_rewards.py', '--workdir={out}')
_BOTH = "('outcome','places')"
METHODS = {
  'weighted_sum': (
    '--method=mo_grpo',
    "--set=method.credit.ComponentScale.over='batch'",
    f'--set=method.credit.ComponentScale.components={_BOTH}',
  ),
  'front': (
    '--method=parrot',
    f'--set=method.credit.ComponentScale.components={_BOTH}',
    f'--set=method.credit.ParetoFront.components={_BOTH}',
  ),
  'named_front': (
    '--method=parrot@identified',
    f'--set=method.credit.OwnComponent.components={_BOTH}',
    f'--set=method.credit.ParetoFront.components={_BOTH}',
  ),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each method."""
  warm = starts.warm(_CONFIG, steps=150)
  trained = (
    Stage(name=name, flags=(*_CONFIG, *flags, '--set=model.path={warm}'))
    for name, flags in METHODS.items()
  )
  return (warm, *trained)
