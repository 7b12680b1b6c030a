"""Text2Grad: rewards of spans, or of the whole response.

The policy learns from 250 steps of supervised training on answers, then from 40
iterations of PPO with a critic of its own layers: with a reward for each digit
that the critique calls right or wrong, with 1 for a right answer, and with the
share of right digits at the end of the answer.
Command: python -m experiments.pipeline --pipeline=text2grad
  --workdir=runs/text2grad
Cost: about two minutes of a CPU core.
Claim: samples are right more often with rewards of spans than with either
  reward of the whole answer.
Expected: see experiments/papers/worlds/README.md.
Source: "Text2Grad: Reinforcement Learning from Natural Language Feedback",
  2025; spans are marked by a rule, and sizes are ours.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/criticised_families.py', '--workdir={out}')
METHODS = {
  'spans': ('--method=text2grad',),
  'outcome': ('--method=text2grad@scalar',),
  'places': (
    '--method=text2grad@scalar',
    "--set=task.reward_weights={{'places': 1.0}}",
  ),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each reward."""
  warm = starts.warm(_CONFIG, steps=250)
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, *flags, '--set=model.path={warm}'),
        *('--set=model.value_head=True', '--set=model.critic=own'),
        *('--set=optimizer.critic_multiplier=10', '--set=iterations=40'),
        '--set=evaluation.every=40',
      ),
    )
    for name, flags in METHODS.items()
  )
  return (warm, *trained)
