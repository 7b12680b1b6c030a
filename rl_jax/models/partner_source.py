"""A frozen model that environments ask while an episode is played."""

import dataclasses

from rl_jax.checks import checked, ranged


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Partner:
  """A frozen model that environments ask by name; see environments.base.Ask.

  path: a work directory or model directory, with any tokenizer. name: what
  environments call it. chat: a question is a message of a user. Answers in text
  are greedy. A question, or a candidate, that is longer than its limit costs
  its episode, with the reason.
  """

  path: str
  name: str = 'partner'
  chat: bool = False
  max_tokens: int = ranged(256, 1)  # of a question
  answer_tokens: int = ranged(64, 1)  # of an answer or a candidate

  def __post_init__(self):
    if not self.path:
      raise ValueError("Partner.path = '': expected the directory of a model")
    if not self.name.isidentifier():
      raise ValueError(f'Partner.name = {self.name!r} is not an identifier')
