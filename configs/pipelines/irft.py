"""iRFT on calls of a calculator: expert iteration, then DPO on steps.

A warm start by SFT, likelihood of right samples, and pairs of the best and the
worst step at every node of a tree of samples; GRPO from the same start has as
many iterations of as many samples as the last two together.
Command: python -m experiments.pipeline --pipeline=irft --workdir=runs/irft
Cost: about three minutes on 2 idle CPU cores, most of it compilation.
Expected: over --seed=0 to 4 the share of right samples is 0.47 at first, 0.83
  [0.74, 0.92] in the last two iterations of the experts, 0.89 [0.84, 0.94] of
  the steps; GRPO ends at 0.88 [0.80, 0.95], and has 0.84 after as many tokens
  as experts and steps together (50,000), so that these gain 0.05 [0.01, 0.10].
  Greedy accuracy is 0.66 at first, 0.97, 0.99 and 0.99.
Source: "Boosting Tool Use of Large Language Models via Iterative Reinforced
  Fine-Tuning", reconstructed from the abstract. Not here: the order from easy
  to hard, the choice of deficient items, the SFT term of the DPO loss and
  further rounds; trees are drawn, not searched.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_TRAIN = ('--config=configs/worlds/calculator.py', '--workdir={out}')


def get_stages() -> tuple[Stage, ...]:
  """Four trainings."""
  return (
    starts.warm(_TRAIN, steps=300),
    Stage(
      name='experts',
      flags=(
        *(*_TRAIN, '--method=expert_iteration', '--set=model.path={warm}'),
        *('--set=iterations=10', '--set=evaluation.every=10'),
      ),
    ),
    Stage(
      name='steps',
      flags=(
        *(*_TRAIN, '--method=mcts_dpo@leaves', '--set=model.path={experts}'),
        '--set=method.rollout.segment_tokens=8',
        *('--set=iterations=10', '--set=evaluation.every=10'),
      ),
    ),
    Stage(
      name='grpo',
      flags=(*_TRAIN, '--method=grpo', '--set=model.path={warm}'),
    ),
  )
