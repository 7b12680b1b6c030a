"""PIT on words written backwards: a policy improves an answer that it is shown.

A plain policy is stopped early, so that it errs. A reward model learns, of its
right and wrong samples, how much better an answer is than a reference. The
refiner, which sees a reference, learns by SFT to write the right word for one
with a wrong letter, then by GRPO with this gap as its only reward (a cut answer
has -5): with references of the data, then, in `second`, with greedy answers of
the plain policy, or, in `no_second`, with those of the data again.
Command: python -m experiments.pipeline --pipeline=pit --workdir=runs/pit
Cost: 2.5 minutes of a CPU core.
Expected: with seed 0, one run, right greedy answers to 500 held-out prompts:
  0.53 of the plain policy; after one and two rounds of refining 0.77 and 0.79
  by SFT only (which is also 100 updates more), 0.36 and 0.37 after `second`,
  0.30 and 0.32 after `no_second`. So GRPO destroys what SFT has reached: the
  gap model is right on 98% of its own comparisons, but in `first` the gap rises
  from -0.03 to 1.06, then 0.66, while right samples go from 0.55 to 0.42. The
  second stage of the curriculum ends 5 points above its control; this is not
  separated from noise, and other rates and seeds were not run.
Source: PIT, "Enable Language Models to Implicitly Learn Self-Improvement From
  Data", 2023, reconstructed; task, GRPO and all sizes are ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/repair.py', '--workdir={out}')
_TRAIN = (*_CONFIG, '--set=evaluation.every=0')
_PLAIN = '--set=model.path={plain}'
_PROMPT = '--set=rollout.max_prompt_tokens=12'
# Of a right and a wrong sample; and by rule, with a true reward that counts 0.
_SAMPLED = "PreferenceRows(path='{pairs}.jsonl')"
_RULED = (
  "RulePairs(task=BackwardWords(reward_weights={{'places': 0.0}}), "
  "symbols='abcdefgh')"
)


def _task(kind: str, pairs: str = _RULED, **fields: str) -> str:
  """A wrapper of the pairs."""
  more = ''.join(f', {name}={text}' for name, text in fields.items())
  return f"--set=task={kind}(task={pairs}, separator='='{more})"


def _shown(split: str, stage: str) -> str:
  """Refinements of the greedy answers that a stage has written."""
  file = f"{{{{'{split}': '{{{stage}}}.jsonl'}}}}"
  return _task('Refinements', references=file)


def _rl(start: str, task: str, seed: int) -> tuple[str, ...]:
  """GRPO by the gap only."""
  return (
    *(*_TRAIN, '--method=grpo', f'--set=model.path={{{start}}}', task, _PROMPT),
    *('--set=rollout.recorded_prompts=0', '--set=rollout.num_prompts=32'),
    *('--set=rollout.group_size=8', '--set=optimizer.learning_rate=3e-4'),
    *('--set=method.losses.KLPenalty.coef=0.1', f'--set=seed={seed}'),
    '--add=method.shaping=NonStop(penalty=-5.0)',
    "--add=judges=Judge(path='{gap}', name='gap', reads='value', "
    "max_tokens=24, template='{{question}}{{response}}={{reference}}')",
  )


def _answers(policy: str, split: str, *flags: str) -> tuple[str, ...]:
  """Greedy answers, of which experiments.evaluate prints the true reward."""
  return (
    *(f'--checkpoint={{{policy}}}', f'--split={split}', '--out={out}.jsonl'),
    *(*flags, '--limit=4000', '--batch_prompts=500'),
  )


def _rounds(policy: str) -> tuple[Stage, ...]:
  """Stages of two rounds of refining the plain answers on held-out words."""
  first, second = f'{policy}_round_1', f'{policy}_round_2'
  return tuple(
    Stage(
      name=name,
      binary='evaluate',
      flags=_answers(policy, 'test', _shown('test', last)),
    )
    for name, last in ((first, 'round_0'), (second, first))
  )


def get_stages() -> tuple[Stage, ...]:
  """Stages `round` are there for what they print."""
  data = _task('Refinements', shown="'data'")
  return (
    Stage(
      name='plain',
      flags=(
        *(*_CONFIG, '--method=sft', '--set=task.form=right'),
        *('--set=rollout.group_size=1', '--set=iterations=80'),
      ),
    ),
    Stage(
      name='samples',
      flags=(
        *(*_TRAIN, '--method=reinforce', _PLAIN, '--set=iterations=60'),
        *('--set=rollout.recorded_prompts=0', '--set=rollout.num_prompts=128'),
        *('--set=rollout.group_size=8', '--set=guards.log_rollouts=128'),
        '--set=optimizer.learning_rate=0.0',
      ),
    ),
    Stage(
      name='pairs',
      binary='rollout_rows',
      flags=('--workdir={samples}', '--out={out}.jsonl'),
    ),
    Stage(
      name='gap',
      flags=(
        *(*_TRAIN, '--method=reward_model@rankings', _PLAIN),
        *(_task('ReferencedPairs', _SAMPLED), '--set=rollout.group_size=4'),
        *('--set=rollout.max_response_tokens=14', '--set=iterations=600'),
      ),
    ),
    Stage(
      name='refiner',
      flags=(
        *(*_TRAIN, '--method=sft', _PLAIN, _task('Refinements'), _PROMPT),
        *('--set=rollout.group_size=1', '--set=iterations=100'),
      ),
    ),
    *(
      Stage(name=name, binary='evaluate', flags=_answers('plain', split))
      for name, split in (('answers', 'train'), ('round_0', 'test'))
    ),
    Stage(name='first', flags=_rl('refiner', data, 0)),
    Stage(name='second', flags=_rl('first', _shown('train', 'answers'), 1)),
    Stage(name='no_second', flags=_rl('first', data, 1)),
    *_rounds('refiner'),
    *_rounds('second'),
    *_rounds('no_second'),
  )
