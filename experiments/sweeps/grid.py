"""A sweep from the command line: a grid over lists that commas separate."""

from collections.abc import Sequence

from experiments.flags import configuration
from experiments.sweeps.runs import Setting, product, value_head

_PAIRS = {')': '(', ']': '[', '}': '{'}
_QUOTES = ('"', "'")


def values(text: str) -> list[str]:
  """The parts of a text between commas.

  A comma in brackets or quotes separates nothing: '1e-4,3e-4' are two values,
  '(0.9,0.99)' and "'a,b'" are one each.

  Raises ValueError for an empty part, and for brackets that do not match.
  """
  found, start, opened, quote = [], 0, [], ''
  for i, character in enumerate(text):
    if quote:
      quote = '' if character == quote else quote
    elif character in _QUOTES and _begins(text, i):
      quote = character
    elif character in _PAIRS.values():
      opened.append(character)
    elif character in _PAIRS:
      if not opened or opened.pop() != _PAIRS[character]:
        raise ValueError(f'{text!r}: {character} closes nothing')
    elif character == ',' and not opened:
      found.append(text[start:i])
      start = i + 1
  if opened or quote:
    raise ValueError(f'{text!r}: {(quote or opened[-1])} is not closed')
  found = [part.strip() for part in (*found, text[start:])]
  if not all(found):
    raise ValueError(f'{text!r} has an empty value between commas')
  return found


def _begins(text: str, i: int) -> bool:
  """True unless the quote is an apostrophe: inside of a word."""
  return i == 0 or not text[i - 1].isalnum()


def settings(
  config: str,
  method: str,
  sets: Sequence[str],
  adds: Sequence[str] = (),
  seeds: int | None = None,
) -> list[Setting]:
  """Configs x methods x values of every field x seeds; seeds vary fastest.

  Args:
    config: configurations, separated by commas.
    method: methods, or 'all'.
    sets: PATH=VALUES.
    adds: PATH=Class(field=literal), the same for all cells.
    seeds: 0 to seeds - 1; None: that of the configuration, or of `sets`.

  A method with a critic gets a value head unless `sets` says otherwise.

  Raises ValueError if a field is given twice.
  """
  names = values(method)
  if names == ['all']:
    names = configuration.names('configs.methods')
  options: dict[str, Sequence] = {'config': values(config), 'method': names}
  for text in sets:
    path, equals, found = text.partition('=')
    if not equals:
      raise ValueError(f'--set={text}: expected --set=PATH=VALUE,VALUE,...')
    if path in options:
      raise ValueError(f'{path} is given twice: give one list, {path}=A,B')
    options[path] = values(found)
  if seeds is not None:
    if seeds < 1:
      raise ValueError(f'--seeds={seeds}: expected at least 1')
    if 'seed' in options:
      raise ValueError(f'give --seeds={seeds} or --set=seed=..., not both')
    options['seed'] = range(seeds)
  more = {'add': list(adds)} if adds else {}
  return [with_head(setting | more) for setting in product(options)]


def with_head(setting: Setting) -> Setting:
  """Adds the value head that the method reads."""
  if 'model.value_head' in setting:
    return setting
  return setting | value_head(configuration.load_method(setting['method']))
