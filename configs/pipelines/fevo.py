"""Continued pretraining, SFT on distilled answers, RL: FEVO on 2-digit sums.

A teacher, which knows the data, stands for the stronger models that FEVO
distils. The student reads the data as plain texts (questions are predicted,
too), learns the teacher's right samples, then samples itself. FEVO's controls
leave stages out: take the stage away, and the path to it out of the next one.
Command: python -m experiments.pipeline --pipeline=fevo --workdir=runs/fevo
Cost: about two minutes on 2 CPU cores.
Expected: greedy accuracy 0.32 of the teacher and 0.34 of the expert, 0.02 of
  the student after pretraining, with seed 0; what follows was not measured.
Source: FEVO (continued pretraining, SFT, RL of a financial model), by its
  abstract; details of its RL are unverified, GRPO and all sizes are ours.
"""

from experiments.pipelines import sums
from experiments.pipelines.stages import Stage


def get_stages() -> tuple[Stage, ...]:
  """A base model, the teacher and what it leaves, the three student stages."""
  sampled = (*sums.CONFIG, '--method=grpo', *sums.SAMPLES)
  student = (*sums.CONFIG, '--method=sft', '--set=rollout.group_size=1')
  base = '--set=model.path={base}'
  return (
    Stage(name='base', flags=(*sums.WARM, '--set=iterations=30')),
    Stage(
      name='teacher',
      flags=(*sums.WARM, '--set=guards.log_rollouts=64', base),
    ),
    Stage(
      name='expert',
      flags=(*sampled, '--set=model.path={teacher}', '--set=iterations=100'),
    ),
    Stage(
      name='texts',
      binary='rollout_rows',
      flags=sums.rows_of('teacher', '--form=text'),
    ),
    Stage(
      name='answers',
      binary='rollout_rows',
      flags=sums.rows_of('expert', '--form=response', '--last=50'),
    ),
    Stage(
      name='pretrained',
      flags=(
        *(*student, *sums.on_rows('texts'), base),
        *('--set=rollout.max_response_tokens=11', '--set=iterations=150'),
      ),
    ),
    Stage(
      name='sft',
      flags=(
        *(*student, *sums.on_rows('answers'), '--set=model.path={pretrained}'),
        *('--set=optimizer.learning_rate=3e-4', '--set=iterations=100'),
      ),
    ),
    Stage(
      name='rl',
      flags=(*sampled, '--set=model.path={sft}', '--set=iterations=100'),
    ),
  )
