"""SPIRAL's transfer: Kuhn poker against itself, then TicTacToe.

`kuhn` learns with the tokens of both games; `after` goes on from it with
TicTacToe, `alone` begins with random weights, and `played` lets the first play
the second.
Command: python -m experiments.pipeline --pipeline=spiral --workdir=runs/spiral
Needs the extra 'games'.
"""

from configs import tic_tac_toe
from experiments.pipelines.stages import Stage

_TRAIN = ('--method=spiral', '--workdir={out}')
_BONUS = '--add=method.losses=EntropyBonus(coef={})'
_GAME = (
  *(*_TRAIN, '--config=configs/tic_tac_toe.py'),
  '--set=method.aggregation.length=5.0',
)


def get_stages() -> tuple[Stage, ...]:
  """Both games with the tokens of configs/tic_tac_toe.py."""
  return (
    Stage(
      name='kuhn',
      flags=(
        *(*_TRAIN, '--config=configs/kuhn.py', _BONUS.format(0.2)),
        '--set=method.aggregation.length=2.0',
        f'--set=task.alphabet={tic_tac_toe.PIECES!r}',
      ),
    ),
    Stage(name='after', flags=(*_GAME, '--set=model.path={kuhn}')),
    Stage(name='alone', flags=_GAME),
    Stage(
      name='played',
      binary='evaluate',
      flags=(
        *('--checkpoint={after}', '--opponent={alone}', '--limit=500'),
        *('--num_samples=1', '--temperature=1.0', '--out={out}.json'),
      ),
    ),
  )
