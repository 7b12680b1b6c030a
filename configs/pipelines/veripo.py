"""GRPO, DPO on pairs of its rollouts, GRPO: VerIPO on 2-digit sums.

The verifier between the stages is the rule of the task: a pair is a right and a
wrong sample of one prompt. VerIPO's own is a small model, which also asks for
consistent, long and reflective chains; here there are none. The second GRPO
stage has the DPO policy as its reference. Without one pair the stage `pairs`
ends with an error.
Command: python -m experiments.pipeline --pipeline=veripo --workdir=runs/veripo
Cost: about two minutes on 2 CPU cores.
Expected: greedy accuracy 0.17 (SFT), 0.17 (GRPO) and 0.20 (GRPO again), with
  seed 0.
Source: VerIPO (HITsz-TMG/VerIPO, README.md, by a digest; there is no training
  code); sizes are ours, and no solved prompts are discarded between stages.
"""

from experiments.pipelines import sums
from experiments.pipelines.stages import Stage


def get_stages() -> tuple[Stage, ...]:
  """Warm start, activation, pairs of its last rollouts, DPO, GRPO."""
  sampled = (*sums.CONFIG, '--method=grpo', *sums.SAMPLES)
  return (
    Stage(name='sft', flags=sums.WARM),
    Stage(
      name='grpo',
      flags=(*sampled, '--set=model.path={sft}', '--set=iterations=60'),
    ),
    Stage(
      name='pairs',
      binary='rollout_rows',
      flags=sums.rows_of('grpo', '--last=30'),
    ),
    Stage(
      name='dpo',
      flags=(
        *(*sums.CONFIG, '--method=dpo', '--set=model.path={grpo}'),
        *sums.on_rows('pairs'),
        *('--set=optimizer.learning_rate=1e-4', '--set=iterations=40'),
      ),
    ),
    Stage(
      name='grpo_again',
      flags=(*sampled, '--set=model.path={dpo}', '--set=iterations=60'),
    ),
  )
