"""QWeb and its instructor: one writes the instruction for a page, one obeys.

Two models begin with untrained weights. The actor is cloned from 40 random
episodes on forms of three fields (configs/pipelines/forms.py). The instructor
learns for 40 steps the instructions of 300 full pages, then for 20 iterations
of GRPO with the reward 1 for a right one. It writes an instruction for each of
400 other pages that random values have filled in, and the actor learns for 60
iterations to fill in forms by them, rewarded by the pages. `oracle` has the
right instructions, `unrelated` those of other pages. `q_learned` is an actor
that obeys another instructor, and both learn by Q-learning (`qweb`) as long as
those by policy gradients; `q_oracle` has the right instructions.
Command: python -m experiments.pipeline --pipeline=inet --workdir=runs/inet
Cost: about six minutes of a CPU core.
Claims: with the instructor more held-out forms are solved than by the clone and
  with `unrelated` instructions, and at most 10 points fewer than with `oracle`.
  By Q-learning the instructor writes 95% right instructions at least, and the
  actor solves more held-out forms than the clone, and at most 10 points fewer
  than `instructed`; with right instructions (`q_oracle`) it solves more than
  the clone, and at most 10 points fewer than `oracle`.
Expected: see experiments/papers/worlds/README.md.
Source: Gur et al., "Learning to Navigate the Web", 2019, from the abstract and
  memory: reconstructed. There both learn by Q-learning only, and a rule visits
  the elements of the page.
"""

from experiments.pipelines.form_clones import clone_flags
from experiments.pipelines.stages import Stage

_NAME = 'configs/worlds/web_form.py'
_TRAIN = (f'--config={_NAME}', '--workdir={out}')
_FORMS = 'papers.episodes.instructed_forms'
_TAUGHT = (
  *(
    '--method=sft',
    '--set=iterations=40',
    '--set=optimizer.learning_rate=2e-3',
  ),
  *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
  *('--set=rollout.group_size=1', '--set=update.minibatch_prompts=64'),
)


def _pages(name: str, count: int, seed: int) -> Stage:
  return Stage(
    name=name,
    binary=_FORMS,
    flags=(
      *('--form=pages', f'--config={_NAME}', f'--pages={count}'),
      *(f'--seed={seed}', '--out={out}.jsonl'),
    ),
  )


def _instructor(name: str, start: str, *flags: str) -> Stage:
  """Trained on pages, single responses."""
  return Stage(
    name=name,
    flags=(
      *(*_TRAIN, f'--set=model.path={{{start}}}', *flags),
      "--set=task=PreferenceRows(path='{lessons}.jsonl')",
      *('--set=rollout.turns=null', '--set=rollout.max_prompt_tokens=8'),
      *('--set=rollout.max_response_tokens=8', '--set=evaluation.every=0'),
    ),
  )


def _trained_instructor(name: str, *flags: str) -> Stage:
  return _instructor(
    name,
    'pupil',
    *flags,
    '--set=iterations=20',
    '--set=optimizer.learning_rate=3e-4',
  )


def _written(name: str, instructor: str) -> Stage:
  """The instructions that an instructor writes for the pages."""
  return Stage(
    name=name,
    binary='evaluate',
    flags=(
      *(f'--checkpoint={{{instructor}}}', '--data={pages}.jsonl'),
      *('--split=train', '--limit=400', '--question={{prompt}}'),
      *('--answer={{completion}}', '--verifier=text', '--extract=whole'),
      *('--max_new_tokens=8', '--out={out}.jsonl'),
    ),
  )


def _goals(name: str, shift: int, written: str = 'written') -> Stage:
  return Stage(
    name=f'goals_{name}',
    binary=_FORMS,
    flags=(
      *('--form=instructed', f'--config={_NAME}', '--source={pages}.jsonl'),
      f'--written={{{written}}}.jsonl',
      *(f'--shift={shift}', '--out={out}.jsonl'),
    ),
  )


def _actor(name: str, task: str, *learner: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_TRAIN, *(learner or ('--method=turn_rloo',))),
      *('--set=model.path={clone}', f'--set=task={task}'),
      *('--set=iterations=60', '--set=optimizer.learning_rate=3e-4'),
      *('--set=evaluation.every=60', '--set=evaluation.num_prompts=100'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Both models, what one writes, and actors that learn by it."""
  weights = "reward_weights={{'outcome': 1.0, 'potential': 1.0}}"
  instructed = f"InstructedForm(path='{{goals}}.jsonl', {weights})"
  return (
    Stage(
      name='untrained',
      flags=(
        *(*_TRAIN, '--method=turn_rloo', '--set=iterations=1'),
        *('--set=optimizer.learning_rate=0.0', '--set=evaluation.every=0'),
      ),
    ),
    Stage(
      name='episodes',
      binary='papers.episodes.relabelled_forms',
      flags=(f'--config={_NAME}', '--out={out}.jsonl', '--episodes=40'),
    ),
    Stage(name='clone', flags=clone_flags('untrained', 'episodes', 60, 150)),
    _pages('lessons', 300, 0),
    _instructor('pupil', 'untrained', *_TAUGHT),
    _trained_instructor('instructor', '--method=grpo@no_kl'),
    _trained_instructor('q_instructor', '--method=qweb'),
    _pages('pages', 400, 1),
    _written('written', 'instructor'),
    _written('q_written', 'q_instructor'),
    _goals('instructed', 0),
    _goals('unrelated', 7),
    _goals('q_learned', 0, 'q_written'),
    _actor('instructed', instructed.replace('goals', 'goals_instructed')),
    _actor('unrelated', instructed.replace('goals', 'goals_unrelated')),
    _actor('oracle', f'WebForm({weights})'),
    _actor(
      'q_learned',
      instructed.replace('goals', 'goals_q_learned'),
      '--method=qweb',
    ),
    _actor('q_oracle', f'WebForm({weights})', '--method=qweb'),
    # The clone, judged as the others are.
    Stage(
      name='clone_judged',
      flags=(
        *(*_TRAIN, '--method=turn_rloo', '--set=model.path={clone}'),
        *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
        *('--set=evaluation.every=1', '--set=evaluation.num_prompts=100'),
      ),
    ),
  )
