"""ONI: a judge labels the messages that an agent has met, between its rounds.

An annotator, a small language model, learns for 60 steps whether 20 of the 45
messages of a grid help, from labels of which a fifth is wrong. An agent learns
20 iterations with a reward at the goal only; in each of three rounds the
annotator labels what the last one has met, and the agent continues for 20
iterations with these labels as a table (`judged`). `ruled` has right labels,
`careless` those of an annotator that has learned wrong labels in half of the
lessons, `careful` of one that has learned none, and `plain` has no labels.
Command: python -m experiments.pipeline --pipeline=oni --workdir=runs/oni
Cost: about eight minutes of a CPU core.
Claims: at the end more episodes reach the goal with `judged` than with `plain`,
  and at most 10 points fewer than with `ruled`; with `careless` fewer than with
  `judged`. Named after the others had run, as the annotator of `judged` had
  learned its wrong lessons by heart: with `careful` more than with `plain`.
Expected: see experiments/papers/worlds/README.md.
Source: "Online Intrinsic Rewards for Decision Making Agents from Large Language
  Model Feedback", 2024 (facebookresearch/oni, by a digest). There an 8B model
  annotates while the policy learns; the grid is that of `told` of
  experiments/papers/episodes.
"""

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 3
_NAME = 'configs/worlds/told_keydoor.py'
# The grid of `told`: 2% of random episodes find the goal, in ten turns.
_AGENT = (
  *(f'--config={_NAME}', '--workdir={out}', '--set=iterations=20'),
  *('--set=task.seed=58', '--set=task.num_train=1'),
  *('--set=model.config.num_layers=1', '--set=model.config.width=32'),
  *('--set=model.config.num_heads=2', '--set=model.config.num_kv_heads=2'),
  *('--set=model.config.mlp_size=64', '--set=model.value_head=True'),
  *('--set=rollout.num_prompts=8', '--set=rollout.turns.max_turns=10'),
  *('--set=rollout.max_response_tokens=60', '--set=evaluation.every=0'),
  *('--set=optimizer.learning_rate=3e-3', '--set=guards.log_rollouts=8'),
)
_ROWS = 'papers.episodes.message_rows'
# Chances of a wrong lesson; None: no lessons, right labels.
ANNOTATORS = {'judged': 0.2, 'ruled': None, 'careless': 0.5, 'careful': 0.0}


def _rows(name: str, form: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    binary=_ROWS,
    flags=(
      f'--form={form}',
      f'--config={_NAME}',
      *flags,
      '--out={out}.jsonl',
    ),
  )


def _annotator(name: str, errors: float) -> tuple[Stage, Stage]:
  """Its lessons, and the model."""
  return (
    _rows(f'lessons_{name}', 'lessons', '--count=20', f'--errors={errors}'),
    Stage(
      name=f'annotator_{name}',
      flags=(
        *('--config=configs/worlds/told_keydoor.py', '--workdir={out}'),
        *('--method=sft', '--set=model.path={untrained}'),
        f"--set=task=PreferenceRows(path='{{lessons_{name}}}.jsonl')",
        *('--set=rollout.turns=null', '--set=rollout.max_prompt_tokens=4'),
        *('--set=rollout.max_response_tokens=2', '--set=evaluation.every=0'),
        *('--set=rollout.recorded_prompts=20', '--set=rollout.num_prompts=20'),
        *('--set=rollout.group_size=1', '--set=update.minibatch_prompts=20'),
        *('--set=iterations=60', '--set=optimizer.learning_rate=2e-3'),
      ),
    ),
  )


def _round(name: str, errors: float | None) -> tuple[Stage, ...]:
  """Questions about what the agent has met, answers, and the agent."""
  asked = f'questions_{name}'
  questions = f'--questions={{{asked}}}.jsonl'
  stages = [_rows(asked, 'questions', f'--workdir={{{name}}}')]
  if errors is None:
    stages.append(_rows(f'table_{name}', 'table', questions))
  else:
    stages.append(
      Stage(
        name=f'answers_{name}',
        binary='evaluate',
        flags=(
          *(f'--checkpoint={{annotator_{name}}}', f'--data={{{asked}}}.jsonl'),
          *('--split=train', '--limit=100', '--question={{prompt}}'),
          *('--answer={{completion}}', '--verifier=text', '--extract=whole'),
          *('--max_new_tokens=2', '--out={out}.jsonl'),
        ),
      )
    )
    answers = f'--answers={{answers_{name}}}.jsonl'
    stages.append(_rows(f'table_{name}', 'table', questions, answers))
  stages.append(
    Stage(
      name=name,
      flags=(
        *(*_AGENT, '--method=oni', f'--set=model.path={{{name}}}'),
        f'--set=method.shaping.FeedbackReward.table={{table_{name}}}.jsonl',
        '--set=method.shaping.FeedbackReward.labels=45',
        '--set=seed={number}',
      ),
    )
  )
  return tuple(stages)


def get_stages() -> tuple[Stage, ...]:
  """Annotators, a start of all agents, and their rounds."""
  untrained = Stage(
    name='untrained',
    flags=(
      *(f'--config={_NAME}', '--workdir={out}', '--method=turn_rloo'),
      *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
      *('--set=rollout.num_prompts=4', '--set=evaluation.every=0'),
    ),
  )
  taught = (
    stage
    for name, errors in ANNOTATORS.items()
    if errors is not None
    for stage in _annotator(name, errors)
  )
  agent = Stage(name='agent', flags=(*_AGENT, '--method=turn_ppo'))
  plain = Stage(
    name='plain',
    flags=(
      *(*_AGENT, '--method=turn_ppo', '--set=model.path={plain}'),
      '--set=seed={number}',
    ),
  )
  rounds = (stage for item in ANNOTATORS.items() for stage in _round(*item))
  return unrolled(
    (untrained, *taught, agent),
    (*rounds, plain),
    ROUNDS,
    dict.fromkeys((*ANNOTATORS, 'plain'), 'agent'),
  )
