"""A reward component that a language model gives when it is asked in text."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import re
import unicodedata

from rl_jax.checks import checked, chosen, ranged

SINGLE, PAIRS, GROUP = 'single', 'pairs', 'group'
_SLOTS = {
  ('response',): SINGLE,
  ('first', 'second'): PAIRS,
  ('responses',): GROUP,
}
# A response, or the turns of an episode: what was done and what was answered.
Said = str | Sequence[tuple[str, str]]
_SLOT = re.compile(r'\{(\w+)\}')
_OPENING = '[({<\u3010\u3014\u3016\u27e6\u27e8'
_CLOSING = '])}>\u3011\u3015\u3017\u27e7\u27e9'


def filled(template: str, texts: Mapping[str, str]) -> str:
  """The template with texts in its slots; others stay as they are."""
  return _SLOT.sub(lambda match: texts.get(match[1], match[0]), template)


def headings_of(template: str) -> tuple[re.Pattern[str], ...]:
  """Returns how the lines of a template begin, up to a text of the data."""
  found = []
  for line in template.splitlines():
    literal = _SLOT.split(line.replace('{number}', '0'))[0].strip()
    if re.search(r'\w', literal):
      parts = re.findall(r'\d+|\w+|[^\w\s]', spelled(literal))
      found.append(re.compile(r'[\W_]*?' + r'\s*'.join(map(_token, parts))))
  return tuple(found)


def _token(part):
  """A pattern: any number, any bracket, or the part itself."""
  if part.isdecimal():
    return r'\d+'
  for brackets in (_OPENING, _CLOSING):
    if part in brackets:
      return f'[{re.escape(brackets)}]'
  return re.escape(part)


def quoted(text: str, headings: Sequence[re.Pattern[str]]) -> str:
  """The text with '> ' before each line that looks like a heading."""
  return ''.join(
    '> ' * any(one.match(spelled(line)) for one in headings) + line
    for line in text.splitlines(keepends=True)
  )


def spelled(text: str) -> str:
  """Folds case and the compatibility forms of Unicode (NFKC)."""
  return unicodedata.normalize('NFKC', text).casefold()


def _check_one(name: str, path: str, function: str) -> None:
  """Raises ValueError if both a model and a function would answer."""
  if path and function:
    raise ValueError(
      f'{name}.path = {path!r} and function = {function!r}: give one of them'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Revision:
  """A model that rewrites a judge's rubric while the policy trains.

  After every so many iterations it reads each of `samples` responses of the
  last one in the template `refine`, slots {rubric}, {prompt}, {response} and
  {score}, and answers with a rubric; then all of these in `merge`, slots
  {rubric} and {rubrics}, and its answer is the rubric from then on.
  path, function, max_tokens, answer_tokens: as of Judge. Answers are greedy.
  Source: MPO, "Toward Evaluative Thinking: Meta Policy Optimization with
  Evolving Reward Models"; minnesotanlp/mpo mpo_trainer.py, by a digest; the
  templates are of this code.
  """

  path: str = ''
  every: int = ranged(10, 1)  # iterations
  samples: int = ranged(20, 1)
  refine: str = (
    'Rubric:\n{rubric}\n\nTask: {prompt}\nResponse: {response}\nScore: {score}'
    '\n\nSay where the rubric misjudges this response. Write a better rubric.\n'
  )
  merge: str = (
    'Rubric:\n{rubric}\n\nProposals:\n{rubrics}\n\nJoin them to one rubric.\n'
  )
  chat: bool = False
  max_tokens: int = ranged(4096, 1)
  answer_tokens: int = ranged(512, 1)
  function: str = ''

  def __post_init__(self):
    _check_one('Revision', self.path, self.function)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Judge:
  """A reward component read from what a model says about a response.

    reward = sum_c w_c s_c / sum_c |w_c|   over the criteria c of the rubric

  The template is the question. Its slots: {prompt}, {answer} (of the data),
  {criterion}, and any text in Example.meta, a rubric or a principle of the row
  say. What it asks about is one of
    {response}: s is what is read of one response;
    {first} and {second}: two of a group, s_a = mean over the other rows b of
      (p(a, b) + 1 - p(b, a)) / 2 with p in [0, 1] what is read; G (G - 1)
      questions a prompt (OpenRubrics, arXiv:2510.07743, which averages neither
      over orders nor over rows: both are of this code). Beside an opponent's
      rows (rollouts.wrappers.Against) b are these; shaping.WinRate reads the
      probabilities themselves;
    {responses}: all of a group in one question, in an order drawn by prompt and
      under the names 1, 2, ... (RewardAnything's form).
  '' is the conversation itself, for models that score it.

  Lines of a response that look like a heading of such a question, or of an
  episode, are quoted ('> [2]'), so that no response continues as another one.

  reads: 'labels': s = sum_k p_k values_k, p the probabilities of the first
  tokens of the labels as the next token, among themselves. 'value': the value
  head after the last token. 'text': a greedy answer of up to answer_tokens,
  its last number, 5 for 5/10; of a group its last JSON object {name: score}.
  What cannot be read counts 0 (MPO's rule) and is counted in metrics.
  score_range: the least and the largest score that is read in a text; null: any
  number. 5/10 is 0.5 of (0, 1).

  path: a work directory or model directory, with any tokenizer; '' is the
  policy that is trained, as it samples (URPO). chat: the question is a message
  of a user. begin, end: only the response after `begin` and before `end` is
  judged; '[NULL]' without them (RLMT's strict form); '': all of it.

  turn: how an episode is rendered in place of a response, turn after turn, with
  the slots {number} (from 1), {action} and {answer}, what was said after it.
  The prompt has what was said first. Scores count at the end of an episode.

  rubric: the text of the slot {rubric}; revision: who rewrites it, if anybody.

  function: 'FILE.py:FUNCTION' or 'MODULE:FUNCTION', which answers in place of a
  model: of the text of a question it returns what is read, a number, or a text
  where `reads` says so. Its tokens are characters. It has no time limit, and
  must return the same for the same question.

  parts: names of the parts of a mixture, or of levels, whose rows are judged;
  rows of others have 0 from this judge. (): all rows.
  """

  path: str = ''
  name: str = 'judge'
  weight: float = 1.0
  template: str = ''
  criteria: tuple[tuple[str, float], ...] = (('', 1.0),)
  chat: bool = False
  reads: str = chosen('labels', ('labels', 'value', 'text'))
  labels: tuple[str, ...] = ('no', 'yes')
  values: tuple[float, ...] = (0.0, 1.0)
  max_tokens: int = ranged(1024, 1)  # of a question
  answer_tokens: int = ranged(256, 1)
  score_range: tuple[float, float] | None = None
  begin: str = ''
  end: str = ''
  turn: str = '[turn {number}]\n{action}\n[answer]\n{answer}\n'
  rubric: str = ''
  revision: Revision | None = None
  function: str = ''
  parts: tuple[str, ...] = ()

  def __post_init__(self):
    _check_one('Judge', self.path, self.function)
    if self.function and self.reads == 'value':
      raise ValueError(
        f"Judge.function = {self.function!r} with reads = 'value': a function "
        "has no value head; 'labels' reads a number"
      )
    if not self.name.isidentifier():
      raise ValueError(f'Judge.name = {self.name!r} is not an identifier')
    numbers = (self.weight, *self.values, *(w for _, w in self.criteria))
    if not all(map(math.isfinite, numbers)):
      raise ValueError(f'{self}: a weight or value is not finite')
    if not sum(abs(w) for _, w in self.criteria):
      raise ValueError(f'Judge.criteria = {self.criteria!r} weigh nothing')
    self._check_labels()
    self._check_range()
    if '{action}' not in self.turn:
      raise ValueError(
        f'Judge.turn = {self.turn!r} tells no episode: it needs the slot '
        '{action}'
      )
    if self.revision and not (self.rubric and '{rubric}' in self.template):
      raise ValueError(
        f'Judge.rubric = {self.rubric!r}, template = {self.template!r}: a '
        'revision needs a rubric, and the slot {rubric} for it'
      )
    if self.reads == 'value' and self.chat and self.template:
      raise ValueError(
        f'Judge.template = {self.template!r}: a chat has its value after '
        "its response, so the template must be ''"
      )
    if self.form == GROUP and self.reads != 'text':
      raise ValueError(
        f'Judge.reads = {self.reads!r}: {{responses}} asks for several scores, '
        "which are read as 'text'"
      )

  def _check_labels(self):
    if len(self.labels) != len(self.values) or len(self.labels) < 2:
      raise ValueError(
        f'Judge.labels = {self.labels!r} and values = {self.values!r}: '
        'expected as many, two at least'
      )
    inside = all(0.0 <= value <= 1.0 for value in self.values)
    if self.form == PAIRS and not (self.reads == 'labels' and inside):
      raise ValueError(
        f'Judge.reads = {self.reads!r}, values = {self.values!r}: {{first}} '
        'and {second} need labels with values from 0 to 1, how often the first '
        'is better'
      )

  def _check_range(self):
    if self.score_range is None:
      return
    low, high = self.score_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
      raise ValueError(
        f'Judge.score_range = {self.score_range!r}: expected the least and the '
        'largest score'
      )
    if self.reads != 'text':
      raise ValueError(
        f'Judge.score_range = {self.score_range!r} with reads = '
        f'{self.reads!r}: only scores in texts have a range'
      )

  @property
  def form(self) -> str:
    """SINGLE, PAIRS or GROUP: what a question is about."""
    if not self.template:
      return SINGLE
    slots = {slot for names in _SLOTS for slot in names}
    used = tuple(sorted(slots & set(_SLOT.findall(self.template))))
    if used not in _SLOTS:
      raise ValueError(
        f'Judge.template = {self.template!r} asks about {used}: expected '
        '{response}, or {first} and {second}, or {responses}'
      )
    return _SLOTS[used]

  @property
  def compares(self) -> bool:
    """Returns whether a question is about several responses of a group."""
    return self.form != SINGLE

  def observed(self, said: Said) -> str:
    """A response as it is, the turns of an episode as a text."""
    if isinstance(said, str):
      return said
    headings = headings_of(self.turn)
    slots = [
      {
        'number': str(n),
        'action': quoted(action, headings),
        'answer': quoted(answer, headings),
      }
      for n, (action, answer) in enumerate(said, 1)
    ]
    return ''.join(filled(self.turn, one) for one in slots)

  def judged(self, response: str) -> str:
    """The part of a response that is judged."""
    for mark, side in ((self.begin, 2), (self.end, 0)):
      if mark:
        parts = response.partition(mark)
        if not parts[1]:
          return '[NULL]'
        response = parts[side]
    return response
