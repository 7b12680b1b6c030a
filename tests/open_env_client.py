"""A client of the protocol of OpenEnv, without a server."""

import types

_REFUSED = {
  'seven': 'VALIDATION_ERROR',
  '77': 'EXECUTION_ERROR',
  'lost': 'SESSION_ERROR',
}


class _Client:
  """A number is guessed; the seed says which."""

  async def connect(self):
    """Returns itself, as clients of the package do."""
    self.is_open = True
    return self

  async def reset(self, **kwargs):
    """The range."""
    self.number = kwargs['seed'] % 10
    return self._result('between 0 and 9', None, False)

  async def step(self, action):
    """`more` or `less`; errors are those of the package's client."""
    assert self.is_open
    if code := _REFUSED.get(action['guess']):
      raise RuntimeError(f'Server error: Invalid message (code: {code})')
    guess = int(action['guess'])
    right = guess == self.number
    says = 'right' if right else 'more' if guess < self.number else 'less'
    return self._result(says, float(right), right)

  async def close(self):
    """Ends the session."""
    self.is_open = False

  def _result(self, said, reward, done):
    return types.SimpleNamespace(
      observation={'said': said}, reward=reward, done=done
    )


def connected():
  """A new one."""
  return _Client()
