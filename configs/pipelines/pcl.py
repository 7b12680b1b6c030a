"""PCL: prompts that a value model predicts to be half solved, or any prompts.

The policy learns from 150 steps of supervised training on six families of
which some are solved, then from 60 iterations of GRPO without scale.
Command: python -m experiments.pipeline --pipeline=pcl --workdir=runs/pcl
Cost: about two minutes of a CPU core.
Claim: the accuracy of samples is higher than with prompts in shuffled passes.
Expected: see experiments/papers/worlds/README.md.
Source: "Prompt Curriculum Learning for Efficient LLM Post-Training", from a
  note with its equations; the value model begins as the policy.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

METHODS = {'valued': 'pcl', 'shuffled': 'pcl@shuffled'}


def get_stages() -> tuple[Stage, ...]:
  """A start, and two ways to choose prompts."""
  trained = (
    Stage(
      name=name,
      flags=(
        *(family_stages.CONFIG, '--workdir={out}', f'--method={method}'),
        *('--set=model.path={warm}', '--set=evaluation.every=60'),
        '--set=evaluation.num_samples=4',
      ),
    )
    for name, method in METHODS.items()
  )
  return (family_stages.WARM, *trained)
