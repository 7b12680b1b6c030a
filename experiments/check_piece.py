"""Checks a piece of yours by the tables that every piece of ours passes.

python -m experiments.check_piece my_pieces.py
rl-jax check-piece my_pieces.py --piece='GroupMedian(scale=0.5)'

Each class of a piece in the file is put into a small method (GRPO, PPO or DPO,
by its role) on a small rollout that holds padding, an observation, a row
without a reward and groups of mixed rewards: masked tokens and failed rows have
to have no part in it, padding and the order of rows must not matter, gradients
are finite, new values of fields compile nothing, states survive a restart. If
the file has get_method(), that method is checked as it is, too. The checks take
seconds and train nothing; the exit code is 1 if one of them fails.
"""

import functools
import sys

from absl import app, flags

from experiments.checks import common, table
from experiments.flags import configuration
from rl_jax import overrides, user_modules

_PIECE = flags.DEFINE_multi_string(
  'piece',
  [],
  'Class(field=literal): the piece to check, with values of its fields; '
  'repeated. Default: all classes of the file, with their defaults.',
)

_ONLY_METHOD = flags.DEFINE_bool(
  'only_method',
  False,
  'Check get_method() only: for pieces that need others beside them.',
)


def subjects(
  path: str, pieces: list[str], only_method: bool = False
) -> list[table.Subject]:
  """Returns what is checked of a file.

  Raises: ValueError if it has no piece, or one that cannot be made.
  """
  module = user_modules.load(path)
  classes = [] if only_method else table.pieces_of(module)
  has_method = hasattr(module, 'get_method') and not pieces
  if not classes and not has_method:
    raise ValueError(f'{path} has neither a piece nor get_method()')
  made = [overrides.parse_piece(text) for text in pieces] or [
    overrides.construct(cls, {}) for cls in classes
  ]
  found = []
  for piece in made:
    one = table.subject(piece)
    if one is None:
      print(f'{type(piece).__name__}: no table for the role {piece.role}')
    else:
      found.append(one)
  if has_method:
    method = configuration.load_method(path)
    case = functools.partial(common.Case, method)
    found.append(table.Subject('get_method()', path, case, common.CHECKS))
  return found


def main(argv):
  """Prints a table for each piece."""
  if len(argv) != 2:
    raise app.UsageError('name one file: check_piece FILE.py')
  failed = 0
  for one in subjects(argv[1], _PIECE.value, _ONLY_METHOD.value):
    rows = list(table.rows(one))
    failed += sum(bool(row.failure) for row in rows)
    print(table.page(one, rows))
  if failed:
    sys.exit(1)


if __name__ == '__main__':
  configuration.run(main, takes_files=True)
