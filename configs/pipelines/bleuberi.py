"""BLEUBERI: GRPO with BLEU as the reward, on the hardest prompts.

A model learns from 2,000 rows for 200 steps. Its greedy responses to 1,000 rows
are scored by BLEU, and the 300 rows with the least, those with most, and random
ones are trained for 60 iterations by GRPO with BLEU as the reward.
Command: python -m experiments.pipeline --pipeline=bleuberi
  --workdir=runs/bleuberi
Cost: about six minutes of a CPU core.
Claim: greedy accuracy is higher with the hardest prompts than with random ones.
Expected: see experiments/papers/worlds/README.md.
Source: "BLEUBERI: BLEU is a surprisingly effective reward for instruction
  following"; lilakk/BLEUBERI training/utils.py and create_training_data.py, by
  a digest: 5,000 of 50,000 prompts there.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

BLEU = 'rl_jax.tasks.bleu_reward:bleuberi'
RULES = {
  'hardest': ('--part=lowest',),
  'easiest': ('--part=highest',),
  'random': (),
}


def _trained(name: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(family_stages.CONFIG, '--method=grpo', '--workdir={out}'),
      '--set=model.path={base}',
      f"--set=task=PreferenceRows(path='{{rows_{name}}}.jsonl')",
      f'--reward={BLEU}',
      *family_stages.evaluated(60),
    ),
  )


def _selected(name: str, flags: tuple[str, ...]) -> Stage:
  rule = ('--rule=random',)
  if flags:
    rule = (
      *('--rule=reward', f'--reward={BLEU}', '--responses={said}.jsonl'),
      *flags,
    )
  return family_stages.selected(f'rows_{name}', *rule, '--keep=300')


def get_stages() -> tuple[Stage, ...]:
  """A start, what it says, three sets of prompts, and GRPO on each."""
  return (
    family_stages.UNTRAINED,
    family_stages.pool('--set=task.num_train=1000'),
    family_stages.own_rows(
      'base', 'untrained', 200, '--set=task=Families(seed=7)'
    ),
    Stage(
      name='said',
      binary='evaluate',
      flags=(
        *('--checkpoint={base}', '--data={pool}.jsonl', '--split=train'),
        *('--question={{prompt}}', '--answer={{completion}}'),
        *('--verifier=text', '--extract=whole', '--limit=1000'),
        *('--out={out}.jsonl', '--max_new_tokens=20'),
      ),
    ),
    *(_selected(name, flags) for name, flags in RULES.items()),
    *map(_trained, RULES),
  )
