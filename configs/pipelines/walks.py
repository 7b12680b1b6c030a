"""Policies that begin with the words of KeyDoor, cloned from random walks.

For each length of words a decoder of 10,000 parameters learns what random
players say; `solver` clones letters of players whose actions are random with
probability 1/2. Grids differ from that of experiments/papers/episodes.
Command: python -m experiments.pipeline --pipeline=walks --workdir=runs/walks
Cost: four minutes of a CPU core.
Expected: experiments/papers/episodes/README.md says how they begin.
"""

from experiments.pipelines.stages import Stage

_SMALL = (
  *('--set=model.config.num_layers=1', '--set=model.config.width=32'),
  *('--set=model.config.num_heads=2', '--set=model.config.num_kv_heads=2'),
  '--set=model.config.mlp_size=64',
)
_TOKENS = {'letter': 2, 'word': 6, 'phrase': 14}  # with the end of the turn


def _clone(name: str, words: str, noise: float, steps: int) -> list[Stage]:
  """Rows, and what is learned from them; untrained weights are another's."""
  task = f'--set=task.words={words}'
  config = '--config=configs/keydoor.py'
  return [
    Stage(
      name=f'rows_{name}',
      binary='walk_rows',
      flags=(config, task, f'--noise={noise}', '--out={out}.jsonl'),
    ),
    Stage(
      name=name,
      binary='sft',
      flags=(
        *(f'--data={{rows_{name}}}.jsonl', f'--model={{untrained_{words}}}'),
        *(f'--steps={steps}', '--learning_rate=5e-3', '--out={out}'),
        *('--batch_size=64', '--warmup_steps=10'),
        f'--max_prompt_tokens={14 + 9 * (3 + _TOKENS[words])}',
        f'--max_response_tokens={_TOKENS[words]}',
        f'--evaluate_every={steps}',
      ),
    ),
  ]


def get_stages() -> tuple[Stage, ...]:
  """Four clones."""
  stages = [
    Stage(
      name=f'untrained_{words}',
      flags=(
        *('--config=configs/keydoor.py', '--method=turn_rloo', *_SMALL),
        *(f'--set=task.words={words}', '--set=iterations=1'),
        *('--set=optimizer.learning_rate=0.0', '--set=evaluation.every=0'),
        '--set=rollout.num_prompts=4',
        '--workdir={out}',
      ),
    )
    for words in _TOKENS
  ]
  for words, steps in zip(_TOKENS, (60, 120, 180), strict=True):
    stages += _clone(words, words, 1.0, steps)
  return (*stages, *_clone('solver', 'letter', 0.5, 150))
