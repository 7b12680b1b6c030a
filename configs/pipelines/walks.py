"""Policies that begin with the words of KeyDoor, cloned from random walks.

For each length of words a decoder of 10,000 parameters learns what random
players say; `solver` clones letters of players whose actions are random with
probability 1/2. Grids differ from that of experiments/papers/episodes.
Letters, turns of one token, are learned from rows of text. An end token closes
longer words, after each of which the clone has to read one: whole walks.
Command: python -m experiments.pipeline --pipeline=walks --workdir=runs/walks
Cost: four minutes of a CPU core.
Expected: experiments/papers/episodes/README.md says how they begin.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/keydoor.py'
_SMALL = (
  *('--set=model.config.num_layers=1', '--set=model.config.width=32'),
  *('--set=model.config.num_heads=2', '--set=model.config.num_kv_heads=2'),
  '--set=model.config.mlp_size=64',
)
# With the end of the turn, and the iterations of their clones.
_TOKENS, _ITERATIONS = {'word': 6, 'phrase': 14}, {'word': 120, 'phrase': 180}
_TURNS, _OBSERVED = 10, 4  # of a walk; tokens after each turn


def _letters(name: str, noise: float, steps: int) -> list[Stage]:
  """Stages that write rows of walks and clone them from untrained weights."""
  return [
    Stage(
      name=f'rows_{name}',
      binary='papers.episodes.walk_rows',
      flags=(
        *(_CONFIG, '--set=task.words=letter', f'--noise={noise}'),
        '--out={out}.jsonl',
      ),
    ),
    Stage(
      name=name,
      binary='sft',
      flags=(
        *(f'--data={{rows_{name}}}.jsonl', '--model={untrained_letter}'),
        *(f'--steps={steps}', '--learning_rate=5e-3', '--out={out}'),
        *('--batch_size=64', '--warmup_steps=10', '--max_prompt_tokens=59'),
        *('--max_response_tokens=2', f'--evaluate_every={steps}'),
      ),
    ),
  ]


def _words(name: str) -> Stage:
  """A stage of SFT on recorded random walks, from random weights."""
  tokens, steps = _TOKENS[name], _ITERATIONS[name]
  task = f"KeyDoor(words='{name}')"
  return Stage(
    name=name,
    flags=(
      *(_CONFIG, '--method=sft', *_SMALL, '--workdir={out}'),
      f'--set=task=RecordedWalks(task={task},noise=1.0,num_recorded=1,'
      f'turns={_TURNS})',
      *('--set=rollout.num_prompts=64', '--set=rollout.group_size=1'),
      *(
        '--set=rollout.recorded_prompts=64',
        '--set=update.minibatch_prompts=64',
      ),
      f'--set=rollout.turns.max_turns={_TURNS}',
      f'--set=rollout.turns.max_turn_tokens={tokens}',
      f'--set=rollout.max_response_tokens={_TURNS * (tokens + _OBSERVED)}',
      *(f'--set=iterations={steps}', '--set=optimizer.warmup_steps=10'),
      *('--set=optimizer.learning_rate=5e-3', '--set=evaluation.every=0'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Four clones."""
  untrained = Stage(
    name='untrained_letter',
    flags=(
      *(_CONFIG, '--method=turn_rloo', *_SMALL, '--set=task.words=letter'),
      *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
      *('--set=evaluation.every=0', '--set=rollout.num_prompts=4'),
      '--workdir={out}',
    ),
  )
  return (
    untrained,
    *_letters('letter', 1.0, 60),
    *(_words(name) for name in _TOKENS),
    *_letters('solver', 0.5, 150),
  )
