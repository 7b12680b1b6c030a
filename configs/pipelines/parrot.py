"""Parrot: fronts of the batch, names of rewards, and prompts that are expanded.

The policy learns from 150 steps of supervised training, then from 60 iterations
on two rewards, a right answer and the share of right digits: their weighted sum
(MO-GRPO over the batch), the front of the batch on that sum, and the front with
each sample counting for the reward that its prompt names.

Another start first writes the prompt out and answers what it has written, with
a slip in three of ten. From there names and fronts train both parts of a
response (`expanded`), or only the answer (`answer_only`), or only the expansion
(`expansion_only`); no expansion is judged.
Command: python -m experiments.pipeline --pipeline=parrot --workdir=runs/parrot
Cost: about four minutes of a CPU core.
Claims: both rewards of samples are higher with names and fronts than with the
  weighted sum; and they are higher when both parts are trained than when only
  one of them is, and than without an expansion.
Expected: see experiments/papers/worlds/README.md.
Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation", reconstructed; text. There two models expand
  and draw, and guidance mixes both prompts; here one policy does both, and its
  answer reads both.
"""

import dataclasses

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


_EXPANDED = (
  '--set=task=TextSpans(task=RewardIdentifiers(task=ExpandedFamilies(slips=0.3)'
  ", marks={{'outcome': 'O', 'places': 'P'}}), think=('=', '|'), segments=(), "
  'opened=True)'
)
PARTS = {
  'expanded': (),
  'answer_only': ('--set=method.weights=(ThoughtWeight(inside=0.0),)',),
  'expansion_only': ('--set=method.weights=(ThoughtWeight(outside=0.0),)',),
}


def get_stages() -> tuple[Stage, ...]:
  """A start and a policy for each method, without and with expansions."""
  warm = starts.warm(_CONFIG, steps=150)
  trained = (
    Stage(name=name, flags=(*_CONFIG, *flags, '--set=model.path={warm}'))
    for name, flags in METHODS.items()
  )
  writes = starts.warm(_CONFIG, _EXPANDED, steps=150)
  writes = dataclasses.replace(writes, name='warm_expanded')
  parts = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, _EXPANDED, '--set=model.path={warm_expanded}'),
        *(*METHODS['named_front'], *flags),
      ),
    )
    for name, flags in PARTS.items()
  )
  return (warm, *trained, writes, *parts)
