"""LID in BabyAI: random walks, then those of the policy, all of them renamed.

A clone of random walks without their loops plays; its episodes are named by
what they faced and cloned too, twice. From the first clone on, with as many
episodes as both rounds have: more random walks (`random`), likelihood of
successful episodes only (`experts`), and `grpo`.
Command: python -m experiments.pipeline --pipeline=gathering
  --workdir=runs/gathering
Cost: about 16 minutes of a CPU core. Needs the extra 'games'.
Expected: over --seed=0 to 4 drawn episodes fulfil 0.62 of held-out missions
  after the first clone, 0.73 and 0.79 after the rounds (+0.16 [0.12, 0.20]), in
  evaluation/avg_at_4 of `clone`, `again` and `result`; over seeds 0 to 2
  `random` has 0.63, `experts` 0.77, `grpo` 0.73. With loops (task.loops=True)
  the first clone has 0.50 with seed 0.
Source: "Pre-Trained Language Models for Interactive Decision-Making", its data
  gathering, reconstructed: see tasks.RenamedWalks. The policy is not
  pre-trained.
"""

from experiments.pipelines.stages import Stage

_PLAYED = ('--config=configs/babyai.py', '--workdir={out}')
_CLONED = (
  *('--config=configs/renamed_babyai.py', '--workdir={out}', '--method=sft'),
  '--set=task.loops=False',
)
_ROUND = 1024  # episodes


def _played(name: str, start: str) -> Stage:
  """Samples of a policy, written down."""
  return Stage(
    name=name,
    flags=(
      *(*_PLAYED, '--method=reinforce', f'--set=model.path={{{start}}}'),
      *('--set=optimizer.learning_rate=0.0', '--set=evaluation.every=0'),
      *('--set=rollout.num_prompts=64', '--set=rollout.group_size=2'),
      *('--set=update.minibatch_prompts=64', '--set=guards.log_rollouts=64'),
      f'--set=iterations={_ROUND // 128}',
    ),
  )


def _cloned(name: str, start: str, *more: str) -> Stage:
  """A hundred further steps."""
  flags = f'--set=model.path={{{start}}}', '--set=iterations=100', *more
  return Stage(name=name, flags=(*_CLONED, *flags))


def _logs(*names: str) -> str:
  paths = ''.join(f"'{{{name}}}/rollouts.jsonl'," for name in names)
  return f'--set=task.logs=({paths})'


def _learned(name: str, method: str) -> Stage:
  """A stage that learns, from the first clone, the episodes of two rounds."""
  count = 2 * _ROUND // 128
  return Stage(
    name=name,
    flags=(
      *(*_PLAYED, f'--method={method}', '--set=model.path={clone}'),
      *(f'--set=iterations={count}', f'--set=evaluation.every={count}'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """The clone, two rounds, and what they are compared with."""
  return (
    Stage(name='clone', flags=_CLONED),
    _played('played', 'clone'),
    _cloned('again', 'clone', _logs('played')),
    _played('played_again', 'again'),
    _cloned('result', 'again', _logs('played', 'played_again')),
    Stage(
      name='random',
      flags=(
        *(*_CLONED, '--set=model.path={clone}', '--set=iterations=200'),
        f'--set=task.num_train={1000 + 2 * _ROUND}',
      ),
    ),
    _learned('experts', 'expert_iteration'),
    _learned('grpo', 'grpo'),
  )
