"""Refactoring by RL: three checks, and what they leave out.

A policy learns 600 steps from targets of which four in ten lack an assignment,
and is then trained by GRPO for 60 iterations: with the paper's three signals,
where a miner only sees that a new function is called; with the strict check of
what was extracted; and with the behaviour as a fourth signal.
Command: python -m experiments.pipeline --pipeline=refactorings
  --workdir=runs/refactorings
Cost: about five minutes of a CPU core.
Claims: with the paper's signals the share of right refactorings rises less than
  with the strict check; the behaviour as a signal raises it, too.
Expected: see experiments/papers/worlds/README.md.
Source: "Generating refactored code accurately using reinforcement learning",
  by a digest of its code, which is PPO on CodeT5; here it is GRPO, and Python.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/refactorings.py', '--workdir={out}')
REWARDS = {
  'called': ("--set=task.detector='called'",),
  'strict': (),
  'behaviour': (
    "--set=task.detector='called'",
    '--set=task.reward_weights='
    "{{'parses': 1.0, 'runs': 1.0, 'extracted': 1.0, 'behaves': 1.0}}",
  ),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each reward."""
  warm = starts.warm(_CONFIG, '--set=task.slips=0.4', steps=600)
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, '--method=grpo@no_kl', '--set=model.path={warm}'),
        *sets,
      ),
    )
    for name, sets in REWARDS.items()
  )
  return (warm, *trained)
