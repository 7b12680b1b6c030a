"""RLGF: a weak policy learns beside a guide that is right more often.

Supervised training of 300 steps makes a guide, and one of 150 steps the policy.
The policy then learns for 40 iterations of PPO with a critic of its own layers:
by itself, after beginnings of the guide (PPO++), with ends of the guide
(AggreVaTeD), with both in turn by chance (LOLS), and with ends in the first 20
iterations (D2LOLS).
Command: python -m experiments.pipeline --pipeline=rlgf --workdir=runs/rlgf
Cost: about four minutes of a CPU core.
Claim: samples are right more often with D2LOLS than with PPO by itself, and
  than samples of the guide.
Expected: see experiments/papers/worlds/README.md.
Source: "Learning to Generate Better Than Your LLM", 2023; sizes are ours.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/families.py', '--workdir={out}')
_SAMPLES = '--set=evaluation.num_samples=4'
METHODS = {
  'ppo': 'ppo',
  'ppo_pp': 'rlgf',
  'aggrevated': 'rlgf@aggrevated',
  'lols': 'rlgf@lols',
  'd2lols': 'rlgf@d2lols',
}


def get_stages() -> tuple[Stage, ...]:
  """Two starts, and a policy for each method."""
  starting = (
    Stage(name=name, flags=starts.warm(_CONFIG, _SAMPLES, steps=steps).flags)
    for name, steps in (('guide', 300), ('weak', 150))
  )
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, f'--method={method}', '--set=model.path={weak}', _SAMPLES),
        *(() if method == 'ppo' else ("--set=method.rollout.path='{guide}'",)),
        *('--set=model.value_head=True', '--set=model.critic=own'),
        *('--set=optimizer.critic_multiplier=10', '--set=iterations=40'),
        '--set=evaluation.every=40',
      ),
    )
    for name, method in METHODS.items()
  )
  return (*starting, *trained)
