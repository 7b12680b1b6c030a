"""CurES: samples where outcomes are spread, or as many of every prompt.

The policy learns from 150 steps of supervised training on six families of
which some are solved, then from 60 iterations of GRPO with 256 samples each.
Command: python -m experiments.pipeline --pipeline=cures --workdir=runs/cures
Cost: about three minutes of a CPU core.
Claims: the accuracy of samples is higher than with as many of every prompt, and
  with measured norms of gradients (`norms`) not lower than without (`spread`).
Expected: see experiments/papers/worlds/README.md.
Source: "CurES: From Gradient Analysis to Efficient Curriculum Learning for
  Reasoning LLMs".
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

METHODS = {
  'spread': ('cures', 4),
  'norms': ('cures@norms', 4),
  'uniform': ('cures@uniform', 8),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and three ways to sample."""
  trained = (
    Stage(
      name=name,
      flags=(
        *(family_stages.CONFIG, '--workdir={out}', f'--method={method}'),
        *('--set=model.path={warm}', '--set=evaluation.every=60'),
        '--set=evaluation.num_samples=4',
        f'--set=rollout.group_size={size}',
      ),
    )
    for name, (method, size) in METHODS.items()
  )
  return (family_stages.WARM, *trained)
