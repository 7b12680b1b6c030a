"""RLAdapter: an adapter that learns how well the policy follows its advice.

An agent cannot see what it holds in KeyDoor, and reads a sub-goal that is new
every four turns. A frozen adviser names the right one if an analysis of the
situation says what is missing, else any. An adapter, a small language model,
writes the analyses; it has learned drawn ones. In each of two rounds it reads
the situations of the agent's last run, and the agent learns 20 more iterations
with what the adviser makes of them. The adapter of `rewarded` has learned from
how well the agent followed each sub-goal (GRPO, 30 iterations), that of
`cloned` its own samples, as the released code does, that of `frozen` nothing;
the agent of `unadvised` has no sub-goals.
Command: python -m experiments.pipeline --pipeline=rladapter
  --workdir=runs/rladapter
Cost: about five minutes of a CPU core.
Claims: more analyses are right with `rewarded` than with `cloned` and `frozen`;
  held-out episodes reach the goal more often with it than with both, and than
  with `unadvised`.
Expected: see experiments/papers/worlds/README.md.
Source: "RLAdapter: Bridging Large Language Models to Reinforcement Learning in
  Open Worlds" (PKU-RL/AdaRefiner, by a digest). That the adapter is rewarded is
  of this code: in the released one nothing of the feedback selects its samples.
  There the adviser is GPT-4 and the adapter a 7B model.
"""

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2
_AGENT = (
  *('--config=configs/worlds/guided_keydoor.py', '--workdir={out}'),
  *('--method=turn_rloo', '--set=guards.log_rollouts=16'),
)
_ADAPTER = (
  *('--config=configs/worlds/guided_keydoor.py', '--workdir={out}'),
  *('--set=rollout.turns=null', '--set=rollout.max_prompt_tokens=4'),
  *('--set=rollout.max_response_tokens=2', '--set=evaluation.every=0'),
)
_ROWS = 'papers.episodes.advice_rows'
KINDS = ('rewarded', 'cloned', 'frozen')


def _rows(name: str, form: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary=_ROWS,
    flags=(f'--form={form}', *flags, '--out={out}.jsonl'),
  )


def _taught(name: str, start: str, task: str, steps: int, rows: int) -> Stage:
  """Supervised training of an adapter."""
  return Stage(
    name=name,
    flags=(
      *(*_ADAPTER, '--method=sft', f'--set=model.path={{{start}}}'),
      *(f'--set=task={task}', f'--set=iterations={steps}'),
      f'--set=rollout.recorded_prompts={rows}',
      *(f'--set=rollout.num_prompts={rows}', '--set=rollout.group_size=1'),
      f'--set=update.minibatch_prompts={rows}',
      '--set=optimizer.learning_rate=2e-3',
    ),
  )


def _sampled(name: str, start: str, task: str, iterations: int, rate: float):
  """GRPO on the table, or with rate 0 the log of its samples."""
  return Stage(
    name=name,
    flags=(
      *(*_ADAPTER, '--method=grpo@no_kl', f'--set=model.path={{{start}}}'),
      *(f'--set=task={task}', f'--set=iterations={iterations}'),
      *(f'--set=optimizer.learning_rate={rate}', '--set=rollout.num_prompts=4'),
      '--set=guards.log_rollouts=4',
    ),
  )


def _adapter(kind: str) -> tuple[Stage, ...]:
  """The stages in which the adapter of a kind learns in a round."""
  name = f'adapter_{kind}'
  task = f"AdviceTable(path='{{table_{kind}}}.jsonl')"
  if kind == 'rewarded':
    return (_sampled(name, name, task, 30, 1e-3),)
  if kind == 'frozen':
    return ()
  own = f"PreferenceRows(path='{{own_{kind}}}.jsonl')"
  return (
    _sampled(f'samples_{kind}', name, task, 10, 0.0),
    Stage(
      name=f'own_{kind}',
      binary='rollout_rows',
      flags=(
        *(f'--workdir={{samples_{kind}}}', '--form=response'),
        *('--min_reward=-1', '--out={out}.jsonl'),
      ),
    ),
    _taught(name, name, own, 30, 16),
  )


def _round(kind: str) -> tuple[Stage, ...]:
  """A table, an adapter, its words, and the agent that reads what follows."""
  table = f'table_{kind}'
  return (
    _rows(table, 'table', f'--workdir={{agent_{kind}}}'),
    *_adapter(kind),
    Stage(
      name=f'words_{kind}',
      binary='evaluate',
      flags=(
        *(f'--checkpoint={{adapter_{kind}}}', f'--data={{{table}}}.jsonl'),
        *('--split=train', '--limit=100', '--question={{prompt}}'),
        *('--answer={{completion}}', '--verifier=text', '--extract=whole'),
        *('--max_new_tokens=2', '--out={out}.jsonl'),
      ),
    ),
    _rows(
      f'advice_{kind}',
      'advice',
      f'--table={{{table}}}.jsonl',
      f'--answers={{words_{kind}}}.jsonl',
    ),
    Stage(
      name=f'agent_{kind}',
      flags=(
        *(*_AGENT, f'--set=model.path={{agent_{kind}}}'),
        f'--set=task.path={{advice_{kind}}}.jsonl',
        '--set=seed={number}',
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Both starts, and ROUNDS of three kinds beside an agent without advice."""
  untrained = Stage(
    name='untrained',
    flags=(
      *(*_AGENT, '--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
      '--set=evaluation.every=0',
    ),
  )
  lessons = "PreferenceRows(path='{lessons}.jsonl')"
  unadvised = Stage(
    name='unadvised',
    flags=(
      *(*_AGENT, '--set=task.advised=False', '--set=seed={number}'),
      '--set=model.path={unadvised}',
    ),
  )
  start = (
    untrained,
    _rows('lessons', 'lessons'),
    _taught('adapter', 'untrained', lessons, 20, 19),
    Stage(name='agent', flags=_AGENT),
    Stage(name='unadvised', flags=(*_AGENT, '--set=task.advised=False')),
  )
  body = (*(stage for kind in KINDS for stage in _round(kind)), unadvised)
  first = {f'{x}_{kind}': x for kind in KINDS for x in ('agent', 'adapter')}
  return unrolled(start, body, ROUNDS, first)
