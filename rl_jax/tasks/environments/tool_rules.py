"""When a conversation with tools ends, and what of it is read and judged."""

from collections.abc import Sequence
import dataclasses

from rl_jax.checks import checked, chosen, ranged

_LEFT_OUT = '...'


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ToolRules:
  """Rules of a conversation; by default a turn without a call is the answer.

  max_calls: turns whose calls are run; a later turn with a call is the answer.
    None: all.
  ends: texts; a turn that has one of them is the answer, whether it has a call
    or not, as '</answer>'. result_ends: the same of the results of a turn, as
    '\\boxed{' that a program prints.
  no_call: what is said to a turn without a call and without one of `ends`,
    after which the conversation continues; '': such a turn is the answer.
  most_characters: of a result; a longer one keeps half of them at either side
    of '...'. None: all of it.
  judged: 'turn', the last turn; 'episode', all turns with what was said between
    them, for rewards that search the whole text.

  Raises: ValueError for no_call without `ends`: no turn would be the answer.
  """

  max_calls: int | None = ranged(None, 0)
  ends: tuple[str, ...] = ()
  result_ends: tuple[str, ...] = ()
  no_call: str = ''
  most_characters: int | None = ranged(None, 2)
  judged: str = chosen('turn', ('turn', 'episode'))

  def __post_init__(self):
    for name, texts in (('ends', self.ends), ('result_ends', self.result_ends)):
      if not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f'ToolRules.{name} = {texts!r}: expected texts')
    if self.no_call and not (self.ends or self.result_ends):
      raise ValueError(
        f'ToolRules.no_call = {self.no_call!r:.80} without ends: no turn would '
        'be the answer'
      )

  def shown(self, text: str) -> str:
    """The result, without its middle if it is long."""
    most = self.most_characters
    if most is None or len(text) <= most:
      return text
    half = most // 2
    return f'{text[:half]}{_LEFT_OUT}{text[-half:]}'

  def is_answer(self, turn: str, num_calls: int, turns_with_calls: int) -> bool:
    """Returns whether a turn is the answer.

    num_calls: in the turn; turns_with_calls: before it.
    """
    if has_one(turn, self.ends):
      return True
    if not num_calls:
      return not self.no_call
    return self.max_calls is not None and turns_with_calls >= self.max_calls


def has_one(text: str, texts: Sequence[str]) -> bool:
  """Returns whether a text has one of several."""
  return any(one in text for one in texts)
