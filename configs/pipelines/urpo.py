"""URPO: one policy answers and judges, in one batch with one loss.

The policy learns from 400 steps of supervised training on answers and on which
of two answers is right. GRPO then trains 60 iterations on
configs/worlds/one_batch.py: with the policy as the judge of its open prompts,
with the start as a judge that does not learn, and with the policy as the judge
but without comparisons to learn from.
Command: python -m experiments.pipeline --pipeline=urpo --workdir=runs/urpo
Cost: about four minutes of a CPU core.
Claim: accuracy on the open prompts is higher with the judge that learns than
  with the frozen one.
Expected: see experiments/papers/worlds/README.md.
Source: "URPO: A Unified Reward & Policy Optimization Framework for Large
  Language Models", 2025, partly reconstructed: the shares of the three kinds
  are ours, and open responses are compared in pairs.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/one_batch.py', '--workdir={out}')
JUDGES = {
  'learning_judge': (),
  'frozen_judge': ("--set=judges.0.path='{warm}'",),
  # The comparisons have no reward.
  'unlearned_judge': ("--set=task.parts.1.task.reward_weights={{'tau': 0.0}}",),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each judge."""
  warm = starts.warm(_CONFIG, '--set=judges=()', steps=400, rows=66)
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, '--method=grpo@no_kl', '--set=model.path={warm}'),
        *sets,
      ),
    )
    for name, sets in JUDGES.items()
  )
  return (warm, *trained)
