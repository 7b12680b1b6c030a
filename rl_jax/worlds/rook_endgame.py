"""King and rook against a king, by python-chess."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)

_DEEPEST = 2  # moves within which the player sees a mate


@dataclasses.dataclass(frozen=True)
@checked
class RookEndgame(EnvironmentTask):
  """White, with king and rook, is to mate a king in at most `moves` moves.

  An observation has the squares of White's king, its rook and Black's king, as
  'd6h1d8>', and an action is a move as UCI writes it, 'h1h8'. Black is a
  script (`answered`). In the first position Black's king is on the last rank,
  White's two ranks below it and at most a file aside, and two good moves mate.
  Components: `win` 1 at mate; `illegal` -1 for a text that is not a legal move,
  which leaves the position as it is; `outcome` as `win`. Stalemate, a lost rook
  and the last move end a game with 0. The same position may occur in two
  splits.
  Source: chess endgames of LMRL-Gym, "Benchmarks for Multi-Turn Reinforcement
  Learning with Language Models", whose positions are any and whose opponent is
  an engine.

  Raises: ImportError without the extra 'chess'.
  """

  moves: int = ranged(6, 1)
  reward_weights: dict[str, float] = base.weights_field(
    win=1.0, illegal=1.0, outcome=0.0
  )
  traits = TaskTraits(global_random=False)
  alphabet = 'abcdefgh12345678>'

  def prepare(self) -> None:
    """Imports the package once."""
    _package()

  def position(self, example: Example) -> str:
    """The first position, as observations write it."""
    stream = draws.Draws('rook endgame', seed_of(example))
    while True:
      black = stream.below(8)
      white = min(max(black + stream.below(3) - 1, 0), 7)
      file, rank = stream.below(8), stream.below(8) + 1
      rook = f'{"abcdefgh"[file]}{rank}'
      squares = f'{"abcdefgh"[white]}6{rook}{"abcdefgh"[black]}8'
      if best_move(squares):
        return squares + '>'

  def make(self, example: Example) -> 'RookGame':
    """A game from the position of the example."""
    return RookGame(self.position(example), self.moves)


class RookGame(Environment):
  """One game; position: its first, as observations write it."""

  def __init__(self, position: str, moves: int):
    _package()
    self._first, self._moves = position[:6], moves

  def reset(self, seed: int) -> Reply:
    """The first position."""
    del seed  # that of the example
    self._now, self._left = self._first, self._moves
    return Reply(f'{self._now}>')

  @property
  def solution(self) -> tuple[str, ...]:
    """The first move towards a mate that is near, or none."""
    found = best_move(self._now)
    return (found,) if found else ()

  @property
  def commands(self) -> tuple[str, ...]:
    """All legal moves."""
    return tuple(move.uci() for move in board(self._now).legal_moves)

  def step(self, action: str) -> Reply:
    """The position after Black's answer to a move."""
    self._left -= 1
    legal, mate, over = action in self.commands, False, not self._left
    if legal:
      game = board(self._now)
      game.push_uci(action)
      mate = game.is_checkmate()
      over = over or mate or not answered(game)
      self._now = _squares(game) if not over else self._now
    return Reply(
      '' if over else f'{self._now}>',
      rewards={
        base.OUTCOME: float(mate),
        'win': float(mate),
        'illegal': float(legal) - 1.0,
      },
      done=over,
    )


def board(squares: str) -> Any:
  """A chess.Board with White's king, its rook and Black's king there, White to
  move.

  squares: as 'd6h1d8'.
  """
  chess = _package()
  game = chess.Board(None)
  for place, piece in zip((0, 2, 4), 'KRk', strict=True):
    square = chess.parse_square(squares[place : place + 2])
    game.set_piece_at(square, chess.Piece.from_symbol(piece))
  return game


def answered(game: Any) -> bool:
  """Black takes the rook if it can, or goes where the centre is nearest.

  Distances are |2 file - 7| + |2 rank - 7|, both from 0; of equal squares Black
  takes the first from a1 to h1, a2 and so on. Returns False if it has no move,
  or none but the draw of a lost rook.
  """

  def preference(move):
    rank, file = divmod(move.to_square, 8)
    distance = abs(2 * file - 7) + abs(2 * rank - 7)
    return not game.is_capture(move), distance, move.to_square

  move = min(game.legal_moves, key=preference, default=None)
  if move is None or game.is_capture(move):
    return False
  game.push(move)
  return True


@functools.lru_cache(maxsize=1 << 16)
def best_move(squares: str, deepest: int = _DEEPEST) -> str:
  """The first legal move, by name, of the shortest way to mate this Black.

  squares: as 'd6h1d8'. deepest: the most moves of White; '' if there is no such
  way or the position is not a legal one.
  """
  game = board(squares)
  if not (game.is_valid() and game.rooks):  # pieces may share a square
    return ''
  moves = sorted(game.legal_moves, key=lambda move: move.uci())
  for depth in range(1, deepest + 1):
    for move in moves:
      game.push(move)
      if depth == 1:
        wins = game.is_checkmate()
      else:
        after = game.copy(stack=False)
        wins = answered(after) and best_move(_squares(after), depth - 1) != ''
      game.pop()
      if wins:
        return move.uci()
  return ''


def _squares(game):
  chess = _package()
  places = (
    game.king(chess.WHITE),
    game.pieces(chess.ROOK, chess.WHITE).pop(),
    game.king(chess.BLACK),
  )
  return ''.join(chess.square_name(place) for place in places)


@functools.cache
def _package():
  """Returns the module chess."""
  try:
    import chess
  except ImportError as error:
    raise ImportError(
      "RookEndgame needs the extra 'chess': pip install 'rl_jax[chess]'"
    ) from error
  return chess
