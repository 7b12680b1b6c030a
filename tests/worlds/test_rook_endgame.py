"""King and rook against a king: positions, Black's script, and the player."""

import sys

import pytest

from rl_jax.worlds import RookEndgame, rook_endgame


def needs_chess():
  pytest.importorskip('chess', reason="needs the extra 'chess'")


def played(position, *actions, moves=6):
  """The replies to actions from a position."""
  game = rook_endgame.RookGame(position, moves)
  assert game.reset(0).observation == f'{position}>'
  return [game.step(action) for action in actions]


@pytest.mark.parametrize(
  ('position', 'action', 'after'),
  [
    # c8 is 3 + 7 from the centre, e8 1 + 7.
    ('d6h1d8', 'h1h2', 'd6h2e8>'),
    # c7 is 3 + 5, b7 5 + 5, and a8 7 + 7.
    ('c5h1b8', 'h1h2', 'c5h2c7>'),
    # Of c7 and d8, 3 + 5 and 1 + 7, it takes the one of the lower rank.
    ('e6h1c8', 'h1h2', 'e6h2c7>'),
  ],
)
def test_black_goes_to_the_centre(position, action, after):
  needs_chess()
  (reply,) = played(position, action)
  assert reply.observation == after and not reply.done
  assert reply.rewards == {'outcome': 0.0, 'win': 0.0, 'illegal': 0.0}


def test_games_by_hand():
  """A mate pays 1; what is not a legal move costs 1 and leaves the position."""
  needs_chess()
  wrong, mate = played('d6h1d8', 'h1g2', 'h1h8')
  assert wrong.observation == 'd6h1d8>' and not wrong.done
  assert wrong.rewards == {'outcome': 0.0, 'win': 0.0, 'illegal': -1.0}
  assert mate.done and mate.observation == ''
  assert mate.rewards == {'outcome': 1.0, 'win': 1.0, 'illegal': 0.0}
  (lost,) = played('d6e1d8', 'e1e8')  # Black takes it
  assert lost.done and not any(lost.rewards.values())
  (stale,) = played('b6h7a8', 'h7b7')  # the king of a8 has no move
  assert stale.done and not any(stale.rewards.values())
  last = played('d6h1d8', 'h1h2', 'h2h3', moves=2)[-1]
  assert last.done and last.rewards['win'] == 0.0


def test_the_player_mates_in_two_by_hand():
  """One move suffices from d6h1d8; from c6h1d8 a move that waits comes first.

  With depth 1 the player is one that only sees a mate at once.
  """
  needs_chess()
  assert rook_endgame.best_move('d6h1d8') == 'h1h8'
  assert rook_endgame.best_move('d6h1d8', 1) == 'h1h8'
  assert rook_endgame.best_move('d6h2e8') != ''
  assert rook_endgame.best_move('d6h2e8', 1) == ''
  assert rook_endgame.best_move('a1h2e5') == ''
  assert rook_endgame.best_move('d6d6d8') == ''  # one square, two pieces


def test_every_first_position_is_mated_in_two():
  """E0: an example gives the same game always, in the task's alphabet."""
  needs_chess()
  task = RookEndgame()
  for index in range(40):
    example = task.example('train', index)
    assert example == task.example('train', index)
    game = task.make(example)
    said = [game.reset(0).observation]
    for _ in range(2):
      assert set(game.solution) <= set(game.commands)
      reply = game.step(game.solution[0])
      said.append(reply.observation)
      if reply.done:
        break
    assert reply.rewards['win'] == 1.0
    assert set(''.join(said)) <= set(task.alphabet)


def test_a_mirrored_position_is_as_near_to_mate():
  """E0: files a to h read from h to a."""
  needs_chess()
  files = str.maketrans('abcdefgh', 'hgfedcba')
  task = RookEndgame()
  for index in range(20):
    squares = task.position(task.example('train', index))[:6]
    mirrored = squares.translate(files)
    at_once = rook_endgame.best_move(squares, 1)
    other = rook_endgame.best_move(mirrored, 1)
    assert bool(at_once) == bool(other)
    if at_once:
      assert played(squares, at_once)[0].rewards['win'] == 1.0
      reply = played(mirrored, at_once.translate(files))[0]
      assert reply.rewards['win'] == 1.0


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='RookEndgame.moves = 0'):
    RookEndgame(moves=0)


def test_a_missing_package_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, 'chess', None)
  rook_endgame._package.cache_clear()
  with pytest.raises(ImportError, match="extra 'chess'"):
    RookEndgame().prepare()
  rook_endgame._package.cache_clear()
