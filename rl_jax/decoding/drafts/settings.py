"""The sources of drafts for speculative decoding: `rollout.speculative`."""

import dataclasses

from rl_jax import checks
from rl_jax.checks import checked, chosen, ranged

REJECTION, UNIFORM = 'rejection', 'uniform'


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class PromptLookup:
  """Drafts what followed the last tokens where they occur before in the row.

  The longest match of at most `ngram` tokens counts, in the prompt and in the
  response so far; see speculative.repeated. tokens: of a draft. most_rows: at
  most so many rows of a device are drafted for at a time, others get one token
  a step: of many rows a product costs more with each token. None: no limit.
  """

  tokens: int = ranged(4, 1, 64)
  ngram: int = ranged(3, 1, 16)
  most_rows: int | None = ranged(None, 1)

  def width(self, slots: int) -> int:
    """Tokens of a draft for each of so many rows; 0: none."""
    return 0 if self.most_rows and slots > self.most_rows else self.tokens


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class PreviousResponses(PromptLookup):
  """The same, and in the response that the prompt had last.

  One response of each prompt is kept, in the checkpoint too. prompts: table
  entries; prompts whose ids are equal modulo this number replace each other.
  """

  prompts: int = ranged(4096, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class DraftModel:
  """Drafts by a smaller model, which has the tokens of the policy.

  path: a work directory or a model directory; no run trains it. tokens: of a
  draft at most. From `least` on a row is drafted no further once the estimated
  probability that some token is wrong exceeds threshold (1: never), see
  decoding.drafts.acceptance. head: a file that
  experiments.papers.decoding.acceptance_head wrote, which estimates it; None:
  by the draft model's probabilities of its tokens.

  coupling: 'rejection' keeps a token with probability min(1, p / q), p of the
  policy and q of the draft model, and draws from (p - q)_+ in its place: as
  many are kept as can be, and responses have exactly the distribution of the
  policy. 'uniform' draws from both with one random number and keeps what is
  equal: tokens are those of plain decoding (E2), but fewer are kept.
  """

  path: str
  tokens: int = ranged(4, 1, 64)
  head: str | None = None
  threshold: float = ranged(0.3, 0.0, 1.0)
  least: int = ranged(2, 1)
  coupling: str = chosen(REJECTION, (REJECTION, UNIFORM))

  def width(self, slots: int) -> int:
    """See PromptLookup."""
    del slots
    return self.tokens


Drafts = PromptLookup | PreviousResponses | DraftModel


def in_evaluations(drafts: Drafts | None) -> Drafts | None:
  """Drafts without earlier responses, which evaluations must not keep."""
  if not isinstance(drafts, PreviousResponses):
    return drafts
  names = [field.name for field in dataclasses.fields(PromptLookup)]
  return PromptLookup(**checks.values(drafts, names))
