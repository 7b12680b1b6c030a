"""RuscaRL: criteria in the prompts of samples, falling, throughout, or none.

The policy learns from 300 steps of supervised training to meet the criteria
that a prompt shows, then from 40 iterations of GRPO on 32 topics whose criteria
it must find: with the scaffold of RuscaRL, which is half as large after a fifth
of them; with one that stays; and without.
Command: python -m experiments.pipeline --pipeline=rusca_rl
  --workdir=runs/rusca_rl
Cost: about two minutes of a CPU core.
Claims: the samples without criteria meet all of them more often after RuscaRL
  than after GRPO, and than after a scaffold that stays.
Expected: see experiments/papers/worlds/README.md.
Source: "Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement
  Learning for General LLM Reasoning", 2025; sizes are ours.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

ITERATIONS = 40
_CONFIG = ('--config=configs/worlds/rubric_topics.py', '--workdir={out}')
_ROLLOUTS = f'--set=method.rollout.rollouts={ITERATIONS}'
METHODS = {
  'falling': ('--method=rusca_rl', _ROLLOUTS),
  'staying': (
    *('--method=rusca_rl', _ROLLOUTS),
    *(
      '--set=method.rollout.midpoint=1.0',
      '--set=method.rollout.steepness=1e3',
    ),
  ),
  'without': ('--method=grpo',),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each scaffold."""
  warm = starts.warm(_CONFIG, '--set=task.shown=True', steps=300)
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, *flags, '--set=model.path={warm}'),
        *(f'--set=iterations={ITERATIONS}', '--set=evaluation.every=40'),
        '--set=optimizer.learning_rate=1e-3',
      ),
    )
    for name, flags in METHODS.items()
  )
  return (warm, *trained)
