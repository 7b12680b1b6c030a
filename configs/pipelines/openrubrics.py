"""OpenRubrics: a generator of rubrics and a judge, from what agrees.

Four rubrics are proposed for each of 60 topics, of which 60% are drawn, beside
six responses in the order of the topic's principles. A generator learns for 200
steps which rubric a topic has, a judge for 600 steps which of two responses is
better by a rubric: with `filtered` from the rubrics and pairs that a judge by
rule confirms, with `unfiltered` from all. The generator then writes a rubric
for every topic once, and the judge compares 600 held-out pairs with it in both
orders, greedily and with five samples; with the rubrics of the topics, too.
Command: python -m experiments.pipeline --pipeline=openrubrics
  --workdir=runs/openrubrics
Cost: about three minutes of a CPU core.
Claims: more verdicts are right with `filtered` than with `unfiltered`; the
  majority of five samples is right as often as the greedy verdict, or more.
Expected: see experiments/papers/worlds/README.md.
Source: "OpenRubrics: Towards Scalable Synthetic Rubric Generation for Reward
  Modeling and LLM Alignment", arXiv:2510.07743, by a digest: tau 0.5 and five
  votes are theirs. There a language model proposes rubrics and re-judges, here
  a draw and a rule.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/principle_pairs.py'
_ROWS = 'papers.worlds.rubric_rows'
KINDS = {'filtered': ('--filtered',), 'unfiltered': ()}


def _rows(name: str, form: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary=_ROWS,
    flags=(f'--form={form}', *flags, '--out={out}.jsonl'),
  )


def _taught(name: str, rows: str, steps: int) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(_CONFIG, '--method=sft', '--workdir={out}'),
      *('--set=model.path={untrained}', '--set=optimizer.learning_rate=2e-3'),
      *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
      *('--set=rollout.group_size=1', f'--set=iterations={steps}'),
      f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
      '--set=evaluation.every=0',
    ),
  )


def _asked(name: str, model: str, rows: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary='evaluate',
    flags=(
      *(f'--checkpoint={{{model}}}', f'--data={{{rows}}}.jsonl'),
      *('--split=train', '--limit=2000', '--question={{prompt}}'),
      *('--answer={{completion}}', '--verifier=text', '--extract=whole'),
      *('--max_new_tokens=4', '--out={out}.jsonl', *flags),
    ),
  )


def _judged(name: str, judge: str, rows: str) -> tuple[Stage, Stage]:
  """Verdicts with five votes, and how many are right."""
  return (
    _asked(f'verdicts_of_{name}', judge, rows, '--num_samples=5'),
    _rows(f'result_{name}', 'result', f'--judged={{verdicts_of_{name}}}.jsonl'),
  )


def _kind(name: str, flags: tuple[str, ...]) -> tuple[Stage, ...]:
  """A generator, a judge, the cache of rubrics, and verdicts."""
  generated = f'--generated={{cache_{name}}}.jsonl'
  return (
    _rows(f'rubrics_{name}', 'rubrics', *flags),
    _rows(f'lessons_{name}', 'verdicts', *flags),
    _taught(f'generator_{name}', f'rubrics_{name}', 200),
    _taught(f'judge_{name}', f'lessons_{name}', 600),
    _asked(f'cache_{name}', f'generator_{name}', 'topics'),
    _rows(f'questions_{name}', 'questions', generated),
    *_judged(name, f'judge_{name}', f'questions_{name}'),
    # The judge by itself: with the rubrics that the topics have.
    *_judged(f'{name}_with_true_rubrics', f'judge_{name}', 'true_questions'),
  )


def get_stages() -> tuple[Stage, ...]:
  """Two models of each kind, and what they say of held-out pairs."""
  untrained = Stage(
    name='untrained',
    flags=(
      *(_CONFIG, '--method=sft', '--workdir={out}', '--set=iterations=1'),
      *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
      *('--set=rollout.group_size=1', '--set=optimizer.learning_rate=0.0'),
      '--set=evaluation.every=0',
    ),
  )
  kinds = (
    stage for name, flags in KINDS.items() for stage in _kind(name, flags)
  )
  start = (untrained, _rows('topics', 'topics'))
  return (*start, _rows('true_questions', 'true_questions'), *kinds)
