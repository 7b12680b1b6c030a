"""Critique-GRPO: one refinement in each group, or samples only.

The policy learns from 250 steps of supervised training on answers and on
answers after a critique, which names the first wrong place, then from 40
iterations: with one refinement a group, and without.
Command: python -m experiments.pipeline --pipeline=critique_grpo
  --workdir=runs/critique_grpo
Cost: about two minutes of a CPU core.
Claim: the accuracy of samples is higher with refinements than without.
Expected: see experiments/papers/worlds/README.md.
Source: "Critique-GRPO: Advancing LLM Reasoning with Natural Language and
  Numerical Feedback", 2025; critiques are written by a rule, and sizes are
  ours.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/criticised_families.py', '--workdir={out}')
METHODS = ('critique_grpo', 'critique_grpo@unrefined')


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each method."""
  warm = starts.warm(_CONFIG, '--set=task.refined=0.5', steps=250)
  trained = (
    Stage(
      name=method.partition('@')[2] or 'refined',
      flags=(
        *(*_CONFIG, f'--method={method}', '--set=model.path={warm}'),
        *('--set=iterations=40', '--set=evaluation.every=40'),
        '--set=method.aggregation.length=10',
      ),
    )
    for method in METHODS
  )
  return (warm, *trained)
