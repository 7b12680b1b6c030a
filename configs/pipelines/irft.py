"""iRFT on calls of a calculator: rounds of experts and of steps where it fails.

A warm start by supervised training from easy to hard: 100 steps on the shorter
half of 1,000 responses of the teacher, 100 on all. In each of two rounds the
policy learns the likelihood of its right samples for 5 iterations, four samples
of each prompt are judged, and `deficient` keeps the 200 prompts with most wrong
ones, of equal ones those whose right call surprises the policy most; then 5
iterations learn pairs of the best and the worst step at every node of trees of
samples on these prompts, and the likelihood of the best steps. `random` has 200
drawn prompts in their place, `grpo` as many iterations of GRPO on all prompts.
Command: python -m experiments.pipeline --pipeline=irft --workdir=runs/irft
Cost: about six minutes of a CPU core.
Claims: after two rounds more samples on held-out prompts are right with
  `deficient` than with `random`, and than with `grpo`.
Expected: see experiments/papers/worlds/README.md. Before rounds, with the steps
  on all prompts and without their likelihood, over --seed=0 to 4, experts and
  steps had 0.05 [0.01, 0.10] more right samples than GRPO after as many tokens.
Source: "Boosting Tool Use of Large Language Models via Iterative Reinforced
  Fine-Tuning", reconstructed from the abstract. There trees are searched, and
  the likelihood is that of the right call of the data.
"""

from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2
KINDS = {
  'deficient': (
    '--rule=deficiency',
    '--outcomes={outcomes_deficient}.jsonl',
    '--model={experts_deficient}',
  ),
  'random': ('--rule=random', '--seed={number}'),
}
_CONFIG = 'configs/worlds/calculator.py'
_TRAIN = (f'--config={_CONFIG}', '--workdir={out}')
_PROMPTS = 1000
_TASK = f'Calculator(num_train={_PROMPTS})'
_SAMPLES = '--set=evaluation.num_samples=4'


def _rows(name: str, *sets: str) -> Stage:
  """Responses of a teacher to the prompts."""
  return Stage(
    name=name,
    binary='papers.worlds.target_rows',
    flags=(
      *(f'--config={_CONFIG}', f'--limit={_PROMPTS}', '--out={out}.jsonl'),
      *sets,
    ),
  )


def _warm(name: str, rows: str, *more: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_TRAIN, '--method=sft', '--set=optimizer.learning_rate=2e-3'),
      *('--set=rollout.recorded_prompts=64', '--set=rollout.num_prompts=64'),
      *('--set=rollout.group_size=1', '--set=iterations=100'),
      f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
      *('--set=evaluation.every=0', *more),
    ),
  )


def _trained(
  name: str, start: str, method: str, iterations: int, task: str = _TASK
) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_TRAIN, f'--method={method}', f'--set=model.path={{{start}}}'),
      *(f'--set=iterations={iterations}', f'--set=task={task}', _SAMPLES),
      f'--set=evaluation.every={iterations}',
    ),
  )


def _round(kind: str) -> tuple[Stage, ...]:
  """Experts, the prompts that are kept, and steps on them."""
  experts, kept = f'experts_{kind}', f'kept_{kind}'
  outcomes = Stage(
    name=f'outcomes_{kind}',
    binary='evaluate',
    flags=(
      *(f'--checkpoint={{{experts}}}', f'--data={_CONFIG}', '--split=train'),
      *(f'--set=task={_TASK}', f'--limit={_PROMPTS}', '--num_samples=4'),
      '--out={out}.jsonl',
    ),
  )
  task = f"KeptPrompts(task={_TASK}, path='{{{kept}}}.jsonl')"
  steps = _trained(f'policy_{kind}', experts, 'mcts_dpo@likely', 5, task)
  tokens = ('--set=method.rollout.segment_tokens=8',)
  return (
    _trained(experts, f'policy_{kind}', 'expert_iteration', 5),
    *((outcomes,) if kind == 'deficient' else ()),
    Stage(
      name=kept,
      binary='select_rows',
      flags=(
        *('--data={right}.jsonl', '--out={out}.jsonl', '--keep=200'),
        *KINDS[kind],
      ),
    ),
    Stage(name=steps.name, flags=(*steps.flags, *tokens)),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, and ROUNDS rounds of the kinds."""
  taught = f'--set=task={_TASK}'
  right = f'--set=task=Calculator(num_train={_PROMPTS}, by_hand=0.0)'
  start = (
    Stage(
      name='untrained',
      flags=(
        *(*_TRAIN, '--method=grpo', '--set=iterations=1'),
        *('--set=optimizer.learning_rate=0.0', '--set=evaluation.every=0'),
      ),
    ),
    _rows('taught', taught),
    _rows('right', right),
    Stage(
      name='short',
      binary='select_rows',
      flags=(
        *('--data={taught}.jsonl', '--rule=length', '--part=lowest'),
        *('--keep=0.5', '--out={out}.jsonl'),
      ),
    ),
    _warm('easy', 'short', '--set=model.path={untrained}'),
    _warm('warm', 'taught', '--set=model.path={easy}'),
  )
  body = (
    *(stage for kind in KINDS for stage in _round(kind)),
    _trained('policy_grpo', 'policy_grpo', 'grpo', 10),
  )
  first = {f'policy_{kind}': 'warm' for kind in (*KINDS, 'grpo')}
  return unrolled(start, body, ROUNDS, first)
