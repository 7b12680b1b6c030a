"""eva: a creator rewrites prompts, a solver learns from the growing pool.

A solver learns from 200 steps of supervised training on 3 to 6 digits, and a
creator to rewrite prompts at random: a digit more, a digit less, another
family. The pool begins with 160 prompts of 3 digits. In each of two rounds
`eva` samples the solver on the pool, draws 64 prompts by how far apart their
outcomes are, trains the creator on those of its earlier rewritings whose
outcomes differed, lets it rewrite the drawn prompts, and trains the solver for
30 iterations of GRPO on the new prompts and as many old ones. `uniform` draws
prompts alike, and its creator does not learn; `static` keeps the pool.
Command: python -m experiments.pipeline --pipeline=eva --workdir=runs/eva
Cost: about six minutes of a CPU core.
Claim: the accuracy of samples on 3 to 6 digits is higher with eva than with
  `uniform`, and with that than with `static`.
Expected: see experiments/papers/worlds/README.md.
Source: Ye et al., "Scalable Reinforcement Post-Training Beyond Static Human
  Prompts: Evolving Alignment via Asymmetric Self-Play", 2024, by abstracts:
  reconstructed. There one large model is both, and a reward model judges.
"""

import dataclasses

from experiments.pipelines import family_stages
from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2
_DIGITS = 'min_digits=3, max_digits=6'
_EVOLVED = 'papers.worlds.evolved_rows'
_ROUND_OF_GRPO = '--set=iterations=30'


def _evolved(name: str, form: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary=_EVOLVED,
    flags=(f'--form={form}', *flags, '--out={out}.jsonl'),
  )


def _taught(name: str, start: str, rows: str, steps: int) -> Stage:
  """A creator that learns rewritings; its limit is that of a prompt."""
  return Stage(
    name=name,
    flags=(
      *(*family_stages.RECORDED, family_stages.RATE),
      *(f'--set=model.path={{{start}}}', f'--set=iterations={steps}'),
      f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
      *('--set=rollout.max_response_tokens=24', '--set=evaluation.every=0'),
    ),
  )


def _solved(name: str, rows: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(family_stages.CONFIG, '--method=grpo@no_kl', '--workdir={out}'),
      *(f'--set=model.path={{{name}}}', _ROUND_OF_GRPO),
      f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
      *family_stages.evaluated(30, _DIGITS),
      '--set=evaluation.num_samples=4',
    ),
  )


def _estimated(kind: str) -> tuple[Stage, ...]:
  """Outcomes of samples on the pool, and a creator that learns from them."""
  return (
    Stage(
      name=f'scores_{kind}',
      binary='evaluate',
      flags=(
        f'--checkpoint={{solver_{kind}}}',
        *(f'--data={{pool_{kind}}}.jsonl', '--split=train', '--limit=4000'),
        *('--question={{prompt}}', '--answer={{completion}}'),
        *('--verifier=text', '--extract=whole', '--max_new_tokens=20'),
        *('--num_samples=6', '--out={out}.jsonl'),
      ),
    ),
    _evolved(
      f'lessons_{kind}',
      'lessons',
      f'--pool={{pool_{kind}}}.jsonl',
      f'--outcomes={{scores_{kind}}}.jsonl',
    ),
    _taught(f'creator_{kind}', f'creator_{kind}', f'lessons_{kind}', 20),
  )


def _round(kind: str, *rule: str) -> tuple[Stage, ...]:
  """Seeds by a rule of select_rows, what is written for them, and GRPO."""
  sources = (
    f'--pool={{pool_{kind}}}.jsonl',
    f'--creator={{written_{kind}}}',
  )
  return (
    Stage(
      name=f'seeds_{kind}',
      binary='select_rows',
      flags=(
        *(f'--data={{pool_{kind}}}.jsonl', '--out={out}.jsonl', '--keep=64'),
        *(*rule, '--seed={number}', '--describe=difficulty'),
      ),
    ),
    Stage(
      name=f'written_{kind}',
      flags=(
        *(family_stages.CONFIG, '--method=reinforce', '--workdir={out}'),
        f'--set=model.path={{creator_{kind}}}',
        f"--set=task=PreferenceRows(path='{{seeds_{kind}}}.jsonl')",
        *('--set=rollout.max_response_tokens=24', '--set=iterations=2'),
        *('--set=rollout.group_size=4', '--set=guards.log_rollouts=32'),
        *('--set=optimizer.learning_rate=0.0', '--set=evaluation.every=0'),
        '--set=seed={number}',
      ),
    ),
    _evolved(f'batch_{kind}', 'batch', *sources, '--seed={number}'),
    _evolved(f'pool_{kind}', 'grown', *sources, '--seed={number}'),
    _solved(f'solver_{kind}', f'batch_{kind}'),
  )


def get_stages() -> tuple[Stage, ...]:
  """Two models, three pools, and ROUNDS rounds of each kind."""
  pool = family_stages.pool(
    '--set=task.min_digits=3',
    '--set=task.max_digits=3',
    '--set=task.num_train=160',
  )
  start = (
    family_stages.UNTRAINED,
    family_stages.own_rows(
      'solver', 'untrained', 200, f'--set=task=Families({_DIGITS}, seed=7)'
    ),
    pool,
    dataclasses.replace(
      pool,
      name='prompts',
      flags=(
        *(family_stages.CONFIG, '--out={out}.jsonl'),
        *('--set=task.min_digits=3', '--set=task.max_digits=6'),
        '--set=task.seed=7',
      ),
    ),
    _evolved('rewritings', 'start', '--pool={prompts}.jsonl'),
    _taught('creator', 'untrained', 'rewritings', 200),
  )
  spread = ('--rule=spread', '--draw', '--outcomes={scores_eva}.jsonl')
  body = (
    *(*_estimated('eva'), *_round('eva', *spread)),
    *_round('uniform', '--rule=random'),
    _solved('solver_static', 'pool'),
  )
  first = {
    f'{name}_{kind}': name
    for kind in ('eva', 'uniform', 'static')
    for name in ('solver', 'pool', 'creator')
  }
  return unrolled(start, body, ROUNDS, first)
