"""A critic that has learned before the policy: PPO and its descendants.

From the start of *brief* PPO, PF-PPO, POAD, PPO-max, NLPO, RLVR and DR-PO train
12 iterations with a value head that begins at 0, and (`_first`) 16 iterations
with a critic of its own layers and ten times the rate, of which the first four
train the critic only.
Command: python -m experiments.pipeline --pipeline=critic_first
  --workdir=runs/critic_first
Cost: about 16 minutes of a CPU core, of which the start takes eight.
Claims: each is higher with a critic that has learned first, on samples, and
  none of these is more than three points below `grpo`; DR-PO is above PPO.
Expected: see experiments/papers/worlds/README.md.
Source: "Secrets of RLHF in Large Language Models Part I: PPO", 2023; the other
  papers are those of the methods. Constants of the critic are ours.
"""

from experiments.pipelines import brief_stages
from experiments.pipelines.stages import Stage

METHODS = ('ppo', 'pf_ppo', 'poad', 'ppo_max', 'nlpo', 'rlvr', 'dr_po')
FIRST = 4  # iterations, of 16 steps each
_HEAD = '--set=model.value_head=True'
_CRITIC = ('--set=model.critic=own', '--set=optimizer.critic_multiplier=10')


def get_stages() -> tuple[Stage, ...]:
  """The start, GRPO, and two of every method."""
  steps = f'--set=method.weights.CriticFirst.steps={16 * FIRST}'
  plain = (brief_stages.trained(name, name, _HEAD) for name in METHODS)
  first = (
    brief_stages.trained(
      f'{name}_first',
      f'{name}@critic_first',
      _HEAD,
      *_CRITIC,
      steps,
      iterations=brief_stages.ITERATIONS + FIRST,
    )
    for name in METHODS
  )
  grpo = brief_stages.trained('grpo', 'grpo')
  return (brief_stages.WARM, grpo, *plain, *first)
