"""Links of losses on pairs that move each score by itself, without margin.

Links are (win, lose, margin), each [N, E] -> loss [N, E]; d = win - lose -
margin of the scores; ls is the logarithm of the sigmoid. Sources are by digests
of the code unless a line says otherwise.
"""

import jax

from rl_jax.pieces.ops import links
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Link
from rl_jax.types import Array

ls = jax.nn.log_sigmoid


@piece
class NCA(Link):
  """-ls(win) - (ls(-win) + ls(-lose)) / 2: absolute scores, no margin.

  Source: TRL dpo_trainer.py (nca_pair).
  """

  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return -ls(win) - 0.5 * (ls(-win) + ls(-lose))


@piece
class APOZero(Link):
  """1 - sigma(win) + sigma(lose): winners up, losers down.

  Source: TRL dpo_trainer.py (apo_zero).
  """

  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return jax.nn.sigmoid(-win) + jax.nn.sigmoid(lose)


@piece
class APODown(Link):
  """sigma(win) + 1 - sigma(win - lose): both down, losers faster.

  Source: TRL dpo_trainer.py (apo_down).
  """

  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return jax.nn.sigmoid(win) + jax.nn.sigmoid(lose - win)


@piece
class BCOPair(Link):
  """-ls(win) - ls(-lose): the winner is compared with 0, and so is the loser.

  Source: TRL dpo_trainer.py (bco_pair).
  """

  margins = links.UNUSED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """[N, E]."""
    del margin
    return -ls(win) - ls(-lose)
