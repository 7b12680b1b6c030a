"""Expert iteration on 2-digit sums: sample, keep what is right, fine-tune.

Samples of a round are those of a run with learning rate 0; the next policy
begins at the last one and learns their right responses, each once whatever the
number of times it was sampled. A prompt without a right sample is left out.
Command: python -m experiments.pipeline --pipeline=expert_iteration
  --workdir=runs/expert_iteration
Cost: about two minutes on 2 CPU cores.
Expected: not measured.
Source: Anthony et al., "Thinking Fast and Slow with Deep Learning and Tree
  Search", 2017, for the name; Gulcehre et al., "Reinforced Self-Training (ReST)
  for Language Modeling", 2023; reconstructed, sizes are ours.
"""

from experiments.pipelines import sums
from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2


def get_stages() -> tuple[Stage, ...]:
  """A warm start, and three stages a round."""
  last = '--set=model.path={policy}'
  body = (
    Stage(
      name='samples',
      flags=(
        *(*sums.CONFIG, '--method=reinforce', *sums.DRAWN, last),
        *('--set=optimizer.learning_rate=0.0', '--set=seed={number}'),
        *('--set=iterations=40', '--set=evaluation.every=0'),
      ),
    ),
    Stage(
      name='rows',
      binary='rollout_rows',
      flags=sums.rows_of('samples', '--form=response'),
    ),
    Stage(
      name='policy',
      flags=(
        *(*sums.CONFIG, '--method=sft', '--set=rollout.group_size=1', last),
        *(*sums.on_rows('rows'), '--set=seed={number}'),
        *('--set=optimizer.learning_rate=3e-4', '--set=iterations=100'),
      ),
    ),
  )
  start = Stage(name='policy_0', flags=sums.WARM)
  return unrolled((start,), body, ROUNDS, {'policy': 'policy_0'})
