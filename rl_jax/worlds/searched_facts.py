"""Questions to a small corpus that is searched by BM25."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import tool_makers
from rl_jax.tasks.environments.base import Environment, EnvironmentTask, Reply

NOTHING = ' nothing'
_SUBJECTS = (
  'brook',
  'cedar',
  'dune',
  'fern',
  'glen',
  'heath',
  'inlet',
  'knoll',
)
_FIELDS = ('colour', 'size', 'shape', 'owner')
_VALUES = (
  'alpha',
  'bravo',
  'delta',
  'gamma',
  'kappa',
  'omega',
  'sigma',
  'theta',
)


@dataclasses.dataclass(frozen=True)
@checked
class SearchedFacts(EnvironmentTask):
  """One fact is asked for, which a search of two words finds.

  First observation ' size fern?'. A turn whose last word is a value (' delta')
  answers and ends the episode; any other is a query, answered by the text that
  BM25 ranks first: ' fern has size delta' has the value, ' dune asks size fern'
  has none; what shares no word with a text finds ' nothing'. Values are drawn
  again for each episode, so that answers cannot be learned by heart.
  Components: `outcome` 1 for the right value, `found` 1 when it is first
  observed.
  Source: this code; retrieval as in "Search-R1: Training LLMs to Reason and
  Leverage Search Engines with Reinforcement Learning".

  Needs the extra 'search'.
  """

  num_subjects: int = ranged(6, 2, len(_SUBJECTS))
  num_fields: int = ranged(3, 1, len(_FIELDS))
  num_values: int = ranged(6, 2, len(_VALUES))
  reward_weights: dict[str, float] = base.outcome_only()
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> tuple[str, ...]:
    """Words with a space before them."""
    words = (*self.subjects, *self.fields, *self.values, 'has', 'asks')
    return (*(f' {word}' for word in words), NOTHING, '?')

  @property
  def subjects(self) -> tuple[str, ...]:
    """Returns what facts are about."""
    return _SUBJECTS[: self.num_subjects]

  @property
  def fields(self) -> tuple[str, ...]:
    """Returns what is known of each."""
    return _FIELDS[: self.num_fields]

  @property
  def values(self) -> tuple[str, ...]:
    """Returns what may be the answer."""
    return _VALUES[: self.num_values]

  @functools.cached_property
  def keys(self) -> tuple[tuple[str, str], ...]:
    """(subject, field) of every fact."""
    return tuple((s, f) for s in self.subjects for f in self.fields)

  def prepare(self) -> None:
    """Imports the package once and indexes the corpus."""
    self.search('')

  def search(self, query: str) -> int | None:
    """The number of the text that is ranked first: facts, then questions.

    Values of facts are not words of the index, which is of all episodes.
    """
    found = tool_makers.ranked(self._texts, query, 1)
    return found[0] if found else None

  @functools.cached_property
  def _texts(self):
    names = self.subjects
    after = dict(zip(names, (*names[1:], names[0]), strict=True))
    facts = tuple(f'{subject} has {field}' for subject, field in self.keys)
    asked = tuple(f'{after[s]} asks {field} {s}' for s, field in self.keys)
    return facts + asked

  def text(self, number: int, values: tuple[str, ...]) -> str:
    """Returns what a text says where facts have such values."""
    observed = f' {self._texts[number]}'
    return f'{observed} {values[number]}' if number < len(values) else observed

  def make(self, example: Example) -> 'Searching':
    """An episode with one question."""
    return Searching(self)


class Searching(Environment):
  """One episode."""

  def __init__(self, task: SearchedFacts):
    self._task = task

  def reset(self, seed: int) -> Reply:
    """Draws the values and the question."""
    task, stream = self._task, draws.Draws('searched', seed)
    self._values = tuple(stream.choice(task.values) for _ in task.keys)
    self._asked = stream.below(len(task.keys))
    self._found = False
    subject, field = task.keys[self._asked]
    return Reply(f' {field} {subject}?', state='')

  def step(self, action: str) -> Reply:
    """A value at the end is an answer, anything else a query."""
    words = action.split()
    said = ' '.join(words)
    if words and words[-1] in self._task.values:
      right = float(words[-1] == self._values[self._asked])
      return self._reply('', right, 0.0, said, done=True)
    number = self._task.search(said)
    text = NOTHING if number is None else self._task.text(number, self._values)
    new = number == self._asked and not self._found
    self._found |= new
    return self._reply(text, 0.0, float(new), said)

  @property
  def commands(self) -> tuple[str, ...]:
    """Queries of two words and of one, and answers."""
    task = self._task
    pairs = tuple(f' {field} {subject}' for subject, field in task.keys)
    words = (*task.subjects, *task.fields, *task.values)
    return (*pairs, *(f' {word}' for word in words))

  @property
  def solution(self) -> tuple[str, ...]:
    """The question as a query, unless its value is known, and the answer."""
    subject, field = self._task.keys[self._asked]
    answer = (f' {self._values[self._asked]}',)
    return answer if self._found else (f' {field} {subject}', *answer)

  def _reply(self, text, right, found, said, done=False):
    rewards: dict[str, Any] = {base.OUTCOME: right, 'found': found}
    calls = int(not done)
    return Reply(
      text, rewards=rewards, done=done, state=said, action=said, calls=calls
    )
