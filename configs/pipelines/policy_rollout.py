"""PolicyRollout: a text of rules is learned by heart, in two stages.

A policy learns to read texts of four rules: 2,500 steps with a text before
every prompt, then 400 with one before half of them. From there, and from 60
further steps on the likelihood of the one text that holds, with queries and
answers, it learns 40 iterations on queries without the text: by GRPO with 8
samples, and with 4 samples of the query beside 4 after the text.
Command: python -m experiments.pipeline --pipeline=policy_rollout
  --workdir=runs/policy_rollout
Cost: about four minutes of a CPU core.
Claims: without the text samples are right more often after PolicyRollout than
  after GRPO, from either start; and after both stages than after one.
Expected: see experiments/papers/worlds/README.md.
Source: "Multimodal Policy Internalization for Conversational Agents", 2025, by
  notes; text only, no chain of thought, and sizes are ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/rule_texts.py', '--workdir={out}')
METHODS = {
  'grpo': ('--method=grpo@no_kl', '--set=rollout.group_size=8'),
  'rollout': (
    '--method=policy_rollout',
    '--set=method.losses.KLPenalty.coef=0.0',
  ),
}


def _reader(name: str, shown: float, steps: int, *flags: str) -> Stage:
  """Supervised training; shown: the share of prompts that have a text."""
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, '--method=sft', f'--set=task.shown={shown}'),
      *('--set=task.others=true', '--set=task.num_train=50000'),
      *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
      *('--set=rollout.group_size=1', '--set=optimizer.learning_rate=2e-3'),
      *(f'--set=iterations={steps}', f'--set=evaluation.every={steps}'),
      *flags,
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Two starts, and both methods from each."""
  lessons = _reader('lessons', 1.0, 2500)
  read = _reader('read', 0.5, 400, '--set=model.path={lessons}')
  text = Stage(
    name='text',
    flags=(
      *(*_CONFIG, '--method=sft', '--set=model.path={read}'),
      *("--set=task.form='text'", '--set=rollout.max_response_tokens=24'),
      *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
      *('--set=rollout.group_size=1', '--set=iterations=60'),
      '--set=evaluation.every=60',
    ),
  )
  trained = (
    Stage(
      name=f'{name}_after_{start}',
      flags=(*_CONFIG, *flags, f'--set=model.path={{{start}}}'),
    )
    for start in ('read', 'text')
    for name, flags in METHODS.items()
  )
  return (lessons, read, text, *trained)
