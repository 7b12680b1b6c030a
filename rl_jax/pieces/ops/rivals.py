"""The rows of a group that a judge of pairs compares with each other."""

import numpy as np

BEATS = 'beats_BG'  # the key of their verdicts, see pieces.row_keys
# Of groups that hold rows of the policy first and as many of an opponent then.
ALL, ACROSS, OPPONENT = 'all', 'across', 'opponent'
KINDS = (ALL, ACROSS, OPPONENT)


def rivals(kind: str, group_size: int) -> np.ndarray:
  """Returns whether row j of a group is a rival of row i, symmetric, bool [G,
  G].

  ALL: every row of every other. ACROSS: each row of the policy of each row of
  the opponent. OPPONENT: the rows of the opponent of each other; those of the
  policy have none. Of ALL and OPPONENT the diagonal is true, though no row is
  its own rival: the numbers of pairs are then multiples of the squared number
  of samples, as microbatches need.
  """
  opponent_G = np.arange(group_size) >= group_size // 2
  return {
    ALL: np.ones((group_size, group_size), bool),
    ACROSS: opponent_G[:, None] != opponent_G,
    OPPONENT: opponent_G[:, None] & opponent_G,
  }[kind]
