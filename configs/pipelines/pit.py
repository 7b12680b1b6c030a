"""PIT on 2-digit sums: a policy that improves an answer which it is shown."""

from experiments.pipelines import sums
from experiments.pipelines.stages import Stage

_TRAIN = (*sums.CONFIG, '--set=evaluation.every=0')
_PAIRS = (
  "RulePairs(task=Arithmetic(digits=2, operations='+', reverse=True, "
  "reward_weights={{'outcome': {weight}}}))"
)


def _task(kind: str, weight: float = 0.0, **fields: str) -> str:
  """A wrapper of the pairs; weight: of the true reward."""
  pairs = _PAIRS.replace('{weight}', str(weight))
  more = ''.join(f', {name}={text}' for name, text in fields.items())
  return f"--set=task={kind}(task={pairs}, separator='='{more})"


def _on_references(split: str, stage: str) -> str:
  """Refinements of the greedy answers that a stage has written."""
  file = f"{{{{'{split}': '{{{stage}}}.jsonl'}}}}"
  return _task('Refinements', references=file)


def _rl(start: str, task: str, seed: int) -> tuple[str, ...]:
  """GRPO by the gap alone."""
  return (
    *(*_TRAIN, '--method=grpo', f'--set=model.path={{{start}}}', task),
    *(*sums.SAMPLES, '--set=iterations=100', f'--set=seed={seed}'),
    *('--set=rollout.max_prompt_tokens=12', '--set=update.epochs=1'),
    "--add=judges=Judge(path='{gap}', name='gap', reads='value', "
    "max_tokens=24, template='{{question}}{{response}}={{reference}}')",
  )


def _answers(policy: str, *flags: str) -> tuple[str, ...]:
  """Greedy answers, of which experiments.evaluate prints the true reward."""
  return (
    *(f'--checkpoint={{{policy}}}', '--out={out}.jsonl', *flags),
    *('--limit=4000', '--batch_prompts=256'),
  )


def _rounds(policy: str) -> tuple[Stage, ...]:
  """Of held-out sums, beginning at the answers of the plain policy."""
  stages, last = [], 'round_0'
  for number in (1, 2):
    name = f'{policy}_round_{number}'
    flags = (_on_references('validation', last), '--split=validation')
    stages.append(
      Stage(name=name, binary='evaluate', flags=_answers(policy, *flags))
    )
    last = name
  return tuple(stages)


def get_stages() -> tuple[Stage, ...]:
  """Stages `round` are there for what they print."""
  plain = '--set=model.path={plain}'
  prompt = '--set=rollout.max_prompt_tokens=12'
  sft = (*_TRAIN, '--method=sft', '--set=rollout.group_size=1')
  return (
    Stage(
      name='plain',
      flags=(
        *(*sums.WARM, '--set=task.task.operations=+'),
        *('--set=rollout.num_prompts=128', '--set=rollout.logged_prompts=128'),
        '--set=iterations=220',
      ),
    ),
    Stage(
      name='gap',
      flags=(
        *(*_TRAIN, '--method=reward_model@rankings', plain),
        *(_task('ReferencedPairs'), '--set=rollout.group_size=4'),
        *('--set=rollout.max_response_tokens=8', '--set=iterations=300'),
      ),
    ),
    Stage(
      name='refiner',
      flags=(
        *(*sft, plain, prompt, _task('Refinements')),
        '--set=iterations=100',
      ),
    ),
    Stage(
      name='answers',
      binary='evaluate',
      flags=_answers('plain', '--split=train'),
    ),
    Stage(
      name='round_0',
      binary='evaluate',
      flags=_answers('plain', '--split=validation'),
    ),
    Stage(
      name='first',
      flags=_rl('refiner', _task('Refinements', shown="'data'"), 0),
    ),
    Stage(
      name='second', flags=_rl('first', _on_references('train', 'answers'), 1)
    ),
    Stage(
      name='no_second',
      flags=_rl('first', _task('Refinements', shown="'data'"), 1),
    ),
    *_rounds('refiner'),
    *_rounds('second'),
    *_rounds('no_second'),
  )
