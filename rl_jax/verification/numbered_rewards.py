"""Rewards of a pool, which a run that continues does not ask for again."""

from collections.abc import Sequence
from typing import Any

from rl_jax.verification.journal import KeptAnswer, Key, NumberedRounds, crc_of
from rl_jax.verification.pool import REWARD, Outcome


class NumberedRewards(NumberedRounds):
  """A VerifierPool whose outcomes are in a journal, each before it is used.

  Timeouts are not reproducible, so that a redone iteration could see another
  outcome than the one that was trained on and logged, and a judge may be slow:
  a run that was killed beside one asks for that one only.
  """

  def reward(
    self, examples: Sequence[Any], responses: Sequence[str]
  ) -> list[Outcome]:
    """VerifierPool.reward, with the outcomes that are known."""
    number, self._number = self._number, self._number + 1
    pairs = zip(examples, responses, strict=True)
    inputs = [[example.id, response] for example, response in pairs]
    former = self._formerly(number, inputs)
    if former is not None and all(_are_numbers(one[0]) for one in former):
      return [Outcome(*one) for one in former]
    keys = [
      Key(number, place, 0, REWARD, crc_of(asked))
      for place, asked in enumerate(inputs)
    ]
    known = {}
    for place, key in enumerate(keys):
      said = self._journal.known(key)
      if said is not None and _are_numbers(said.reply):
        known[place] = Outcome(said.reply, said.outcome, said.detail)

    def heard(place: int, outcome: Outcome, queued: float, ran: float) -> None:
      """Writes the outcome of a sample."""
      kind, components, detail = (
        outcome.kind,
        outcome.components,
        outcome.detail,
      )
      said = KeptAnswer(kind, components, detail, queued, ran)
      self._journal.add(keys[place], said)

    return self.pool.reward(examples, responses, known, heard)

  def names(self) -> list[str]:
    """Components that samples have had, see VerifierPool.names."""
    return self.pool.names()

  def add_names(self, names: Sequence[str]) -> None:
    """Continues a run whose samples have had these components."""
    self.pool.add_names(names)


def _are_numbers(components):
  """Returns whether all components are numbers; a failure has none."""
  values = (components or {}).values()
  return all(type(x) in (int, float) for x in values)
