"""Runs the tables of checks on pieces, and prints what passed."""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
from typing import Any, NamedTuple

from experiments.checks import common, sampling
from experiments.flags import configuration
from rl_jax.method import Method
from rl_jax.pieces import calls, losses, roles
from rl_jax.pieces.piece import Piece


class Row(NamedTuple):
  """One check: its name, what it says, and why it failed, or ''.

  Of several checks that end in one error, the first has it.
  """

  name: str
  says: str
  failure: str
  ran: bool = True


@dataclasses.dataclass(frozen=True)
class Subject:
  """A piece or a method, and the table that it has to pass."""

  title: str
  place: str  # FILE:LINE
  made: Callable[[], Any]  # what the checks take
  checks: dict[str, Callable[[Any], None]]


def method_of(piece: Piece) -> Method | None:
  """A method in which the piece acts; None: its role has none of this kind.

  A policy loss, credit, shaping, a weight and so on replace those of GRPO; what
  compares pairs replaces a part of DPO.
  """
  grpo = configuration.load_method('grpo')
  dpo = configuration.load_method('dpo')
  ppo = configuration.load_method('ppo')
  pair_loss = dpo.losses[0]
  match piece:
    case roles.Regularizer() | roles.ValueLoss():
      return grpo.replace(losses=(losses.PPOClip(), piece))
    case roles.Loss():
      return grpo.replace(losses=(piece,))
    case roles.Weight():
      return grpo.replace(weights=(piece,))
    case roles.Credit():
      return grpo.replace(credit=(piece,))
    case roles.Shaping():
      return grpo.replace(shaping=(piece,))
    case roles.GroupFilter():
      return grpo.replace(group_filter=piece)
    case roles.Aggregation():
      return grpo.replace(aggregation=piece)
    case roles.ValueTarget():
      return ppo.replace(value_target=piece)
    case roles.Pairs():
      return dpo.replace(pairs=piece)
    case roles.Score():
      return dpo.replace(losses=(pair_loss.replace(score=piece),))
    case roles.Link():
      return dpo.replace(losses=(pair_loss.replace(link=piece),))
    case roles.EdgeWeight():
      return dpo.replace(losses=(pair_loss.replace(weight=piece),))
  return None


def subject(piece: Piece) -> Subject | None:
  """Returns what is checked of a piece; None: there is no table for its
  role.
  """
  title = f'{type(piece).__name__}, role {piece.role}'
  place = calls.place(piece)
  method = method_of(piece)
  if method is not None:
    return Subject(title, place, lambda: common.Case(method), common.CHECKS)
  if isinstance(piece, roles.LogitTransform):
    return Subject(title, place, lambda: piece, sampling.LOGITS)
  if isinstance(piece, roles.Selector):
    return Subject(title, place, lambda: piece, sampling.SELECTOR)
  return None


def rows(one: Subject) -> Iterator[Row]:
  """Every check of the table."""
  try:
    made = one.made()
  except Exception as error:  # of the user's code
    failure = reason(error, one.place)
    yield Row('begins', 'The piece and its state can be made.', failure)
    return
  seen = set()
  for name, check in one.checks.items():
    failure = _failure(check, made, one.place)
    says = ' '.join((check.__doc__ or '').partition('\n\n')[0].split())
    ran = failure not in seen
    seen |= {failure} - {''}
    yield Row(name.replace('_', ' '), says, failure if ran else '', ran)


def _failure(check, made, place):
  try:
    check(made)
  except Exception as error:  # of the user's code, or what differs
    return reason(error, place)
  return ''


def reason(error: BaseException, place: str) -> str:
  """The text of an error on one line, with the place of the class."""
  text = ' '.join(str(error).split()) or type(error).__name__
  if not isinstance(error, (AssertionError, ValueError)):
    text = f'{type(error).__name__}: {text}'
  return text if place.rpartition(':')[0] in text else f'{text} ({place})'


def page(one: Subject, results: Sequence[Row]) -> str:
  """The table of a subject as text."""
  lines = [f'{one.title} ({one.place})']
  for row in results:
    mark = 'FAIL' if row.failure else 'pass' if row.ran else '  - '
    lines.append(f'  {mark}  {row.name}')
    if row.failure:
      lines += [f'        {row.says}', f'        {row.failure}']
  failed = sum(bool(row.failure) for row in results)
  rest = sum(not row.ran for row in results)
  end = f', {rest} end in the same error' if rest else ''
  lines.append(f'{len(results)} checks, {failed} failed{end}')
  return '\n'.join(lines) + '\n'


def pieces_of(module: Any) -> list[type[Piece]]:
  """The classes of pieces that a module defines.

  Raises: ValueError naming a class that derives from a role without @piece.
  """
  found = [
    value
    for value in vars(module).values()
    if isinstance(value, type)
    and issubclass(value, Piece)
    and value.__module__ == module.__name__
  ]
  for cls in found:
    if not dataclasses.is_dataclass(cls):
      raise ValueError(f'{cls.__name__}: write @piece above the class')
  return found
