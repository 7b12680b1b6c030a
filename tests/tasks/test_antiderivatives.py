"""Antiderivatives are compared by numbers; texts are never run."""

import pytest

from rl_jax.tasks.antiderivatives import is_antiderivative
from rl_jax.tasks.expressions import ExpressionError

pytest.importorskip('mpmath', reason="needs the extra 'tasks'")


@pytest.mark.parametrize(
  ('text', 'integrand', 'right'),
  [
    ('x**2', '2*x', True),
    ('x**2 + C', '2*x', True),
    ('(x + 1)**2 - 2*x - 7', '2*x', True),
    ('x**2 + x/10**9', '2*x', False),
    ('x**2 + C*x', '2*x', False),
    ('-x**2', '2*x', False),
    ('x', '2*x', False),
    ('2*x', '2*x', False),
    ('0', '2*x', False),
    ('x*sin(2*x)', 'x*sin(2*x)', False),
    ('sin(2*x)/4 - x*cos(2*x)/2', 'x*sin(2*x)', True),
    ('x*log(x) - x', 'log(x)', True),
    ('x*log(x)', 'log(x)', False),
    ('x*asin(3*x) + sqrt(1 - 9*x**2)/3', 'asin(3*x)', True),
    ('x*atan(2*x) - log(4*x**2 + 1)/4', 'atan(2*x)', True),
    ('-2*(2*x - 10)**(3/2) + C', '-6*sqrt(2*x - 10)', True),
    ('-2*(2*x - 10)**(3/2) + C', '6*sqrt(2*x - 10)', False),
    ('exp(x**2 + 3)', '2*x*exp(x**2 + 3)', True),
    ('E**(x**2 + 3)', '2*x*exp(x**2 + 3)', True),
    ('x/0', '2*x', False),
    ('x**x', '2*x', False),
  ],
)
def test_by_hand(text, integrand, right):
  assert is_antiderivative(text, integrand, 'x') is right


def test_the_variable_is_that_of_the_problem():
  assert is_antiderivative('X**2', '2*X', 'X')
  with pytest.raises(ExpressionError, match='Name'):
    is_antiderivative('x**2', '2*X', 'X')


@pytest.mark.parametrize(
  'text',
  [
    *('', ' ', 'x x', '2x', 'x^2', 'x;x', 'x = x', 'x,', 'x\n+x'),
    *('Integral(2*x, x)', "__import__('os')", 'x.real', 'x.__class__', 'x[0]'),
    *('lambda: x', '[x]', 'x if x else x', "f'{x}'", 'exp(x=x)', 'exp(x, x)'),
    *('True', '1j', "'x'", 'x // 2', 'x % 2', 'x @ x', '~x', 'not x', 'nan'),
    *('9**9**9**9', '(((9**99)**99)**99)**99', 'exp(exp(exp(exp(9))))'),
    *('1e999', '1e308*1e308', '9' * 900, '(' * 300, '-' * 999 + 'x'),
    *('x' * 1001, 'x + ' * 400 + 'x', 'sin(10**9)', '\x00', '\ud800'),
  ],
)
def test_what_is_not_of_the_grammar_is_an_error(text):
  """Also what would take long."""
  with pytest.raises(ExpressionError):
    is_antiderivative(text, '2*x', 'x')
