"""RLP: thoughts that make a known text likely, without a verifier.

A policy that writes the steps of 4 or 5 operations, or guesses, comes from
supervised training of 500 steps. It then learns for 40 iterations: from the
gain of thoughts, with an averaged teacher and with a frozen one; and from as
many steps of supervised training on answers only, as continued pretraining has
them.
Command: python -m experiments.pipeline --pipeline=rlp --workdir=runs/rlp
Cost: about five minutes of a CPU core.
Claim: samples are right more often after learning from the gain than at the
  start, and than after the continued supervised training.
Expected: see experiments/papers/worlds/README.md.
Source: "RLP: Reinforcement as a Pretraining Objective", 2025; sizes are ours,
  and the text is the answer of a problem.
"""

from experiments.pipelines.stages import Stage

_CONFIG = (
  *('--config=configs/worlds/chain.py', '--workdir={out}'),
  *('--set=task.min_operations=2', '--set=task.max_operations=4'),
)
_DATA = (
  *('--method=sft', '--set=rollout.recorded_prompts=64'),
  *('--set=rollout.num_prompts=64', '--set=rollout.group_size=1'),
  '--set=update.minibatch_prompts=64',
)


def get_stages() -> tuple[Stage, ...]:
  """A start, two teachers, and answers only."""
  warm = Stage(
    name='warm',
    flags=(
      *(*_CONFIG, *_DATA, '--set=task.guesses=0.4', '--set=task.slips=0.12'),
      *('--set=optimizer.learning_rate=2e-3', '--set=iterations=500'),
      '--set=evaluation.every=500',
    ),
  )
  rest = (
    *('--set=model.path={warm}', '--set=iterations=40'),
    '--set=evaluation.every=40',
  )
  gains = tuple(
    Stage(name=name, flags=(*_CONFIG, f'--method={method}', *rest))
    for name, method in (('average', 'rlp'), ('frozen', 'rlp@frozen'))
  )
  answers = Stage(
    name='answers',
    flags=(*_CONFIG, *_DATA, *rest, '--set=task.guesses=1.0'),
  )
  return (warm, *gains, answers)
