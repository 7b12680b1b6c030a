"""RuleReasoner on a mixture: six families, some of them solved at the start.

The policy learns from 150 steps of supervised training on all families, then
from 60 iterations of GRPO: with shares of the families that follow their
rewards, changed every eight iterations, or with equal shares.
Command: python -m experiments.pipeline --pipeline=rule_reasoner
  --workdir=runs/rule_reasoner
Cost: about two minutes of a CPU core.
Claim: the accuracy of samples over all families is higher than with equal
  shares.
Expected: see experiments/papers/worlds/README.md.
Source: "RuleReasoner: Reinforced Rule-based Reasoning via Domain-aware Dynamic
  Sampling"; its constants.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage


def get_stages() -> tuple[Stage, ...]:
  """A start, and two ways to draw."""
  trained = (
    Stage(
      name=name,
      flags=(
        *('--config=configs/worlds/family_mixture.py', '--workdir={out}'),
        *(f'--method=rule_reasoner@{name}', '--set=model.path={warm}'),
      ),
    )
    for name in ('parts', 'fixed')
  )
  return (family_stages.WARM, *trained)
