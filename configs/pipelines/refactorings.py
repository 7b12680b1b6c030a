"""Refactoring by RL: three checks, and what they leave out.

A policy learns 600 steps from targets of which four in ten lack an assignment,
and is then trained for 60 iterations: with the paper's three signals, where a
miner only sees that a new function is called; with the strict check of what was
extracted; and with the behaviour as a fourth signal. Each is GRPO without KL,
and (`ppo_`) PPO as the paper has it: values of a head of the model, and the
adaptive coefficient of the KL to the start in the reward.
Command: python -m experiments.pipeline --pipeline=refactorings
  --workdir=runs/refactorings
Cost: about ten minutes of a CPU core.
Claims: with the paper's signals the share of right refactorings rises less than
  with the strict check; the behaviour as a signal raises it, too. With PPO both
  hold, and with its signals, as in the paper, the share is above the start's.
Expected: see experiments/papers/worlds/README.md.
Source: "Generating refactored code accurately using reinforcement learning",
  by a digest of its code: CodeT5 and Java there, Python here. Constants of PPO
  are those of its library, by memory, with 2 epochs of 4 minibatches; rates and
  sizes are ours.
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


METHODS = {
  '': ('--method=grpo@no_kl',),
  'ppo_': (
    *('--method=ppo', '--set=model.value_head=True'),
    # A horizon of 10,000 responses, 256 of them a rollout.
    '--set=method.shaping=(AdaptiveKLInReward(start=0.2, target=6.0, '
    'gain=0.0256),)',
    '--set=method.losses.ValueClip.coef=0.05',  # 0.1, of half the square
    *('--set=update.epochs=2', '--set=update.minibatch_prompts=8'),
  ),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and for each method a policy for each reward."""
  warm = starts.warm(_CONFIG, '--set=task.slips=0.4', steps=600)
  trained = (
    Stage(
      name=prefix + name,
      flags=(*_CONFIG, *method, '--set=model.path={warm}', *sets),
    )
    for prefix, method in METHODS.items()
    for name, sets in REWARDS.items()
  )
  return (warm, *trained)
