"""A calculator as a tool."""

from rl_jax.tasks import expressions

_DIGITS = 6  # of a value that is not an integer


def calculator(expression: str) -> str:
  """Computes the value of an arithmetic expression.

  Args:
    expression: integers of up to 6 digits with + - * / and parentheses
  """
  value, _ = expressions.evaluate(expression)
  if value.denominator == 1:
    return str(value.numerator)
  return f'{float(value):.{_DIGITS}g}'
