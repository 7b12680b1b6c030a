"""Scores of answers to problems of reasoning-gym.

Its scorers were written for answers that mean no harm: some run the answer as
Python, some take as long as the answer likes, raise on what they cannot read,
or pay for what is not an answer. So a scorer of the package sees only texts of
the grammar of its generator, what it returns is checked, and a few are
replaced.
"""

import cmath
from collections.abc import Callable, Mapping
from fractions import Fraction
import inspect
import json
import re
import sys
from typing import Any

from rl_jax.tasks import answers, antiderivatives, expressions

_MOST_CHARACTERS = 10_000  # of an answer, or four times those of the right one
# Where the time grows with their square, or faster.
_FEWER_CHARACTERS = {
  'polynomial_multiplication': 2000,
  'propositional_logic': 500,
}
_ROUNDING = 1e-9  # of a score above 1
_PARTIAL = 0.9  # at most, for what is more than the right answer

_FACTOR = r'(?:[0-9]{1,20}|[A-Za-z](?: *\*\* *[0-9]{1,3})?)'
_TERM = rf'{_FACTOR}(?: *\* *{_FACTOR})*'
# Whole texts that the package's scorer may see; others are malformed. The first
# five are run as Python: nothing can be spelled here but lists, numbers, and
# names and texts without a meaning. Counts of moves are loops.
GRAMMARS = {
  'binary_matrix': re.compile(r'[0-9,\[\]\s]*'),
  'spiral_matrix': re.compile(r'[0-9,\[\]\s]*'),
  'n_queens': re.compile(r"""[_Q,\[\]'"\s]*"""),
  'string_insertion': re.compile(r"""[A-E,\[\]'"\s]*"""),
  'polynomial_multiplication': re.compile(
    rf'(?: *[-+])? *{_TERM}(?: *[-+] *{_TERM})* *'
  ),
  'rubiks_cube': re.compile(r'(?:(?!\d{2}).)*', re.DOTALL),
  'rush_hour': re.compile(r'(?:(?!\d{2}).)*', re.DOTALL),
}
# Modules that run code, but only of their own problems.
ONLY_PROBLEMS = frozenset(
  {
    *('advanced_geometry', 'basic_arithmetic', 'bf', 'bitwise_arithmetic'),
    *('codeio', 'simple_equations'),
  }
)
# The right answer is one text: its beginning, and what follows it, is not a
# right answer, which the scorers of these do not see.
_ONE_TEXT = frozenset(
  {
    *('figlet_font', 'game_of_life', 'letter_jumble', 'spell_backward'),
    'word_sorting',
  }
)
_RUNS = re.compile(
  r'(?<!re\.)\b(?:eval|exec|compile|parse_expr|sympify|nsimplify|parse_latex'
  r'|__import__|import_module)\(|\b(?:pickle|marshal|shelve|subprocess)\b'
  r'|\bos\.(?:system|popen|exec)|\byaml\.(?:unsafe_)?load\('
  r'|\b(?:import|from) sympy'
)
_NUMBER = re.compile(r'-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?')
_NO_SOLUTIONS = ('', 'none', '[]', 'nosolutions', 'norealsolutions')
_MOST_DISTANCE = 1_000_000  # cells of an edit distance


def check_known(generator: str, dataset: Any) -> None:
  """Raises ValueError if its scorer could run answers and was not examined.

  So could one that a later version of the package has.
  """
  known = GRAMMARS.keys() | _OWN.keys() | ONLY_PROBLEMS
  if generator in known:
    return
  found = runs_text(type(dataset))
  if found:
    raise ValueError(
      f'the module of the reasoning-gym generator {generator!r} has {found}: '
      'its scorer could run answers as Python, and gym_scores.py knows no '
      'grammar for them'
    )


def runs_text(dataset_class: type) -> list[str]:
  """Returns what in the modules of a class could run a text, as it is written
  there.
  """
  found: set[str] = set()
  for one in dataset_class.__mro__:
    module = sys.modules.get(one.__module__)
    if module is not None and one is not object:
      found |= set(_RUNS.findall(_source(module)))
  return sorted(found)


def _source(module):
  try:
    return inspect.getsource(module)
  except (OSError, TypeError):
    return ''


def score(
  generator: str, dataset: Any, answer: str, entry: Mapping[str, Any]
) -> float | None:
  """A score in [0, 1], 1 for a right answer; None for a malformed one."""
  most = _FEWER_CHARACTERS.get(generator, _MOST_CHARACTERS)
  most = max(most, 4 * len(str(entry['answer'])))
  grammar = GRAMMARS.get(generator)
  if len(answer) > most or (grammar and not grammar.fullmatch(answer)):
    return None
  return unchecked(generator, dataset, answer, entry)


def unchecked(
  generator: str, dataset: Any, answer: str, entry: Mapping[str, Any]
) -> float | None:
  """Like `score`, for a text that is not a response: one of any grammar."""
  try:
    if generator in _OWN:
      found = float(_OWN[generator](dataset, answer, entry))
    else:
      found = float(dataset.score_answer(answer, entry))
  except Exception:  # of malformed answers, which scorers do not expect
    return None
  if not 0.0 <= found <= 1.0 + _ROUNDING:
    return None
  if generator in _ONE_TEXT and _bare(answer) != _bare(entry['answer']):
    found = min(found, _PARTIAL)
  return min(found, 1.0)


def right_answer(generator: str, entry: Mapping[str, Any]) -> str | None:
  """A right answer as text, None if the generator has none."""
  answer, metadata = entry['answer'], entry['metadata']
  if answer is None:
    keys = ('possible_answer', 'example_answer', 'example_correct_answer')
    found = [metadata[key] for key in keys if metadata.get(key)]
    answer = found[0] if found else None
  if generator == 'intermediate_integration' and 'Integral(' in answer:
    answer = _integral(metadata)  # the package has copied the question
  if isinstance(answer, dict):
    return json.dumps(answer)
  return None if answer is None else str(answer)


def _integral(metadata):
  import sympy

  variable = sympy.Symbol(metadata['variable'])
  # The text is the generator's own.
  return (
    f'{sympy.integrate(sympy.sympify(metadata["integrand"]), variable)} + C'
  )


def _bare(text):
  return ''.join(text.lower().split())


# Scorers in place of those of the package: (dataset, answer, entry) -> score.
# Those of the package ran the answer as Python, or paid for other answers.


def _all_numbers(dataset, answer, entry):
  """countdown and puzzle24: every given number once, and exactly the target."""
  del dataset
  metadata = entry['metadata']
  value, used = expressions.evaluate(answer, signs=True)
  whole = sorted(used) == sorted(metadata['numbers'])
  return 1.0 if whole and value == metadata.get('target', 24) else 0.05


def _antiderivative(dataset, answer, entry):
  del dataset
  metadata = entry['metadata']
  return antiderivatives.is_antiderivative(
    answer, metadata['integrand'], metadata['variable']
  )


def _probability(dataset, answer, entry):
  """coin_flip: the beginning of the number was right, too."""
  del dataset
  return _close(answer, entry, Fraction(1, 10_000))


def _decimal(dataset, answer, entry):
  """decimal_arithmetic: 0 was right for any small number."""
  places = dataset.config.max_num_decimal_places
  return _close(answer, entry, Fraction(1, 10**places))


def _close(answer, entry, most):
  """Returns whether the number is the right one, up to `most` and a
  thousandth.
  """
  found, right = answers.parse_number(answer), Fraction(entry['answer'])
  if found is None:
    raise ValueError(f'{answer!r:.80} is not a number')
  return abs(found - right) <= min(most, abs(right) / 1000)


def _truth_value(dataset, answer, entry):
  """game_of_life_halting."""
  del dataset
  return answer.lower() == entry['answer'].lower()


def _complex_number(dataset, answer, entry):
  """A distance of nan was the best one."""
  if not cmath.isfinite(dataset.parse_string_to_complex(answer)):
    raise ValueError(f'{answer!r:.80} is not finite')
  return dataset.score_answer(answer, entry)


def _first_number(dataset, answer, entry):
  """gsm_symbolic: with its sign."""
  del dataset
  match = _NUMBER.search(answer)
  if match is None:
    raise ValueError(f'{answer!r:.80} has no number')
  found = match[0].replace(',', '')
  return 1.0 if float(found) == float(entry['answer']) else 0.01


def _sorted_numbers(dataset, answer, entry):
  """number_sorting: numbers one away from the given ones were right, too."""
  del dataset
  found = json.loads(answer.replace("'", '"'))
  return [*map(float, found)] == [
    *map(float, entry['metadata']['sorted_numbers'])
  ]


def _real_solutions(dataset, answer, entry):
  """polynomial_equations: without one any text without a number was right."""
  if entry['answer']:
    return dataset.score_answer(answer, entry)
  return _bare(answer).rstrip('.') in _NO_SOLUTIONS


def _conclusion(dataset, answer, entry):
  """Checks the variables first: 2^n rows are tried for n of them."""
  from reasoning_gym.logic import propositional_logic

  formula = propositional_logic.Expression.from_string(answer)
  unknown = dataset._collect_variables([formula])
  unknown -= set(entry['metadata']['variables'])
  if unknown:
    raise ValueError(f'variables {sorted(unknown)!r:.80}')
  return dataset.score_answer(answer, entry)


def _output(dataset, answer, entry):
  """codeio: part marks by edit distance, unless that would take long."""
  if len(answer) * len(entry['answer']) <= _MOST_DISTANCE:
    return dataset.score_answer(answer, entry)
  return json.loads(answer) == json.loads(entry['answer'])


_OWN: dict[str, Callable[[Any, str, Mapping[str, Any]], float]] = {
  'codeio': _output,
  'coin_flip': _probability,
  'complex_arithmetic': _complex_number,
  'countdown': _all_numbers,
  'decimal_arithmetic': _decimal,
  'game_of_life_halting': _truth_value,
  'gsm_symbolic': _first_number,
  'intermediate_integration': _antiderivative,
  'number_sorting': _sorted_numbers,
  'polynomial_equations': _real_solutions,
  'propositional_logic': _conclusion,
  'puzzle24': _all_numbers,
  'simple_integration': _antiderivative,
}
