"""Hints for a frozen model whose summaries should have certain words."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Ask,
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)
from rl_jax.worlds.partner_lessons import Lessons

WRITER = 'writer'
LETTERS = 'abcdefghij'
KEYWORDS = LETTERS[::2]


@dataclasses.dataclass(frozen=True)
@checked
class HintedKeywords(EnvironmentTask, Lessons):
  """A document 'bdaehc>' is summarised by the partner 'writer' with a hint.

  A document is `words` different letters in random order, two of them from
  KEYWORDS. The policy writes a hint; the writer is asked 'bdaehc|ae=' and has
  been taught to write the hint's letters that the document has, in the order of
  the hint, or without any the first two letters of the document.
  Components: `outcome`, F1 = 2 |S and K| / (|S| + |K|) of the sets of the
  summary's letters S and of the document's keywords K; `unhinted`, the same
  without a hint, which weighs nothing by default.
  Source: "Guiding Large Language Models via Directional Stimulus Prompting";
  Leezekun/Directional-Stimulus-Prompting, by a digest: there the metric is
  ROUGE or BLEU, times 10, and a mean over four samples; here the answer is
  greedy, and the documents are of this code.
  """

  words: int = ranged(6, 3, 7)  # letters of a document
  traits = TaskTraits(global_random=False, asks=(WRITER,))
  alphabet = LETTERS + '>'
  partner_alphabet = LETTERS + '|='

  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """A document with a hint of up to three letters, and its summary."""
    document = self._document(stream)
    hint = ''.join(LETTERS[stream.below(len(LETTERS))] for _ in range(3))
    hint = hint[: stream.below(4)]
    known = dict.fromkeys(x for x in hint if x in document)
    return f'{document}|{hint}=', ''.join(known) or document[:2]

  def document(self, example: Example) -> str:
    """The document of the example."""
    return self._document(draws.Draws('document', seed_of(example)))

  def _document(self, stream):
    def shuffled(x):
      return sorted(x, key=lambda _: stream.uniform())

    others = [x for x in LETTERS if x not in KEYWORDS]
    chosen = shuffled(KEYWORDS)[:2] + shuffled(others)[: self.words - 2]
    return ''.join(shuffled(chosen))

  def make(self, example: Example) -> 'Hinting':
    """An episode on the document of the example."""
    return Hinting(self.document(example))


def f1(summary: str, keywords: str) -> float:
  """2 |S and K| / (|S| + |K|) of the sets of letters; 0 without letters."""
  found, wanted = set(summary), set(keywords)
  return 2.0 * len(found & wanted) / max(1, len(found) + len(wanted))


class Hinting(Environment):
  """One episode: a hint, and the writer with and without it."""

  def __init__(self, document: str):
    self._document = document
    self._keywords = ''.join(x for x in document if x in KEYWORDS)
    self._unhinted: str | None = None
    self._hint: str | None = None

  def reset(self, seed: int) -> Reply:
    """The document, which the writer reads without a hint first."""
    del seed  # that of the example
    return Reply(f'{self._document}>', ask=self._ask(''))

  def step(self, action: str) -> Reply:
    """A hint, or a summary of the writer."""
    if self._unhinted is None:
      self._unhinted = action
      return Reply()
    if self._hint is None:
      self._hint = action.replace('>', '')
      return Reply(ask=self._ask(self._hint))
    rewards = {
      base.OUTCOME: f1(action, self._keywords),
      'unhinted': f1(self._unhinted, self._keywords),
    }
    return Reply(rewards=rewards, done=True, info={'summary': action})

  def _ask(self, hint):
    return Ask(WRITER, f'{self._document}|{hint}=')
