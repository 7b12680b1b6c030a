"""EGPO on calls of functions: a bonus for the entropy of thoughts.

A policy learns 200 steps of a teacher who recalls the parameters of functions
before it calls them, with slips in a fifth of the functions, and leaves decoys
out. 40 iterations follow with the reward 1 for the right calls: GRPO, EGPO, and
EGPO with constants scaled to the small entropies of this world (egpo@scaled).
Command: python -m experiments.pipeline --pipeline=egpo --workdir=runs/egpo
Cost: about four minutes of a CPU core.
Claims: the share of right samples is higher with `egpo` than with `grpo`, and
  with `scaled` than with `egpo`; the entropy of samples is highest with
  `scaled`.
Expected: see experiments/papers/worlds/README.md.
Source: Hao et al., "Exploring Superior Function Calls via Reinforcement
  Learning", 2025, from a reproduction plan: reconstructed. Its data are calls
  of BFCL; here functions are drawn.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/thought_calls.py', '--workdir={out}')
METHODS = {'grpo': 'grpo', 'egpo': 'egpo', 'scaled': 'egpo@scaled'}


def get_stages() -> tuple[Stage, ...]:
  """A start, and three policies."""
  warm = starts.warm(
    _CONFIG,
    '--set=task.task.slips=0.2',
    '--set=update.minibatch_prompts=64',
    steps=200,
  )
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, f'--method={method}', '--set=model.path={warm}'),
        '--set=optimizer.learning_rate=3e-4',
      ),
    )
    for name, method in METHODS.items()
  )
  return (warm, *trained)
