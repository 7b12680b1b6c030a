"""RLMT: a policy thinks before it answers, and a judge reads the answer only.

A policy begins with 300 steps on chains of a teacher, whose steps are thoughts
and whose answer comes after `>`, another one with as many on chains without
thoughts (the last step and the answer). Both learn for 40 iterations from a
scripted judge that likes right digits and long texts (worlds.fond_judge) and
reads what comes after `>`. The judge of `leaked` reads the whole text, as the
released code does where it finds no delimiter; `pairs` is the other algorithm
of the paper, DPO on the best and the worst of eight samples by the judge.
Command: python -m experiments.pipeline --pipeline=rlmt --workdir=runs/rlmt
Cost: about five minutes of a CPU core.
Claims: the share of right samples on held-out prompts is higher with `thinks`
  than with `answers`; with `leaked` more steps are written than with `thinks`,
  and fewer samples are right.
Expected: see experiments/papers/worlds/README.md.
Source: "Language Models that Think, Chat Better", 2025 (princeton-pli/RLMT, by
  a digest). There an 8B reward model judges chats, and the start has seen
  simulated thoughts; here a script judges digits.
"""

import dataclasses

from experiments.pipelines import chain_stages, starts
from experiments.pipelines.stages import Stage
from rl_jax.worlds import fond_judge

ITERATIONS = 40
_VISIBLE = ", begin='>'"
# Name of the stage: (its start, its method, what the judge reads).
POLICIES = {
  'thinks': ('warm', 'rlmt', _VISIBLE),
  'answers': ('warm_answers', 'rlmt', _VISIBLE),
  'leaked': ('warm', 'rlmt', ''),
  'pairs': ('warm', 'online_dpo', _VISIBLE),
}


def _policy(name: str, start: str, method: str, reads: str) -> Stage:
  template = fond_judge.TEMPLATE.replace('{', '{{').replace('}', '}}')
  template = template.replace('\n', '\\n')
  return Stage(
    name=name,
    flags=(
      *(*chain_stages.CONFIG, f'--method={method}'),
      f'--set=model.path={{{start}}}',
      "--set=task.reward_weights={{'outcome': 0.0}}",
      "--add=judges=Judge(function='rl_jax.worlds.fond_judge:score', "
      f"template='{template}'{reads})",
      f'--set=iterations={ITERATIONS}',
      f'--set=evaluation.every={ITERATIONS}',
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Two starts, and a policy for each way to learn."""
  answers = starts.warm(
    chain_stages.CONFIG,
    *chain_stages.FAULTS,
    '--set=task.guesses=1.0',
    steps=300,
  )
  return (
    chain_stages.WARM,
    dataclasses.replace(answers, name='warm_answers'),
    *(_policy(name, *of) for name, of in POLICIES.items()),
  )
