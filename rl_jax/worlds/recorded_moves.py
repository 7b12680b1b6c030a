"""Moves of recorded games as a task of one decision: what was done here?"""

from collections.abc import Sequence
import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.tasks.environments.base import SEED
from rl_jax.worlds.key_door import KeyDoor
from rl_jax.worlds.key_door_words import ACTIONS, WORDS, observed

_LETTERS = WORDS['letter']


@dataclasses.dataclass(frozen=True)
@checked
class RecordedMoves(DrawnTask):
  """Prompt 'k01d11g20:02->', a state of KeyDoor; response 'u', the move.

  A recorded player makes the first move of a shortest way to the goal, or with
  probability `noise` any of the six. Its states lie on such a way. Component:
  `outcome` 1 for the recorded move; `best_accuracy` is the mean of the best
  policy. Grids of the splits differ.
  Source: "Think in Games: Learning to Reason in Games via Reinforcement
  Learning with Large Language Models", reconstructed: there states are of a
  game of many players, and an answer is reasoned about.
  """

  size: int = ranged(3, 3, 9)
  noise: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(500, 1)
  num_test: int = ranged(500, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def alphabet(self) -> str:
    """The alphabet of KeyDoor."""
    return KeyDoor(size=self.size).alphabet

  @property
  def best_accuracy(self) -> float:
    """1 - noise, and what any move hits by chance."""
    return 1.0 - self.noise + self.noise / len(_LETTERS)

  def example(self, split: str, index: int) -> Example:
    """A state, and the move that was made there."""
    base.check_index(self, split, index)
    grids = KeyDoor(
      size=self.size,
      seed=self.seed,
      num_train=self.num_train,
      num_held_out=max(self.num_validation, self.num_test),
    )
    seed = grids.example(split, index).meta[SEED]
    stream = draws.Draws('move', self.seed, split, index)
    layout = grids.layout(seed)
    way, state = layout.solution(), (*layout.start, 0)
    count = stream.below(len(way))
    for action in way[:count]:
      state = layout.next(state, action)
    move = way[count]
    if stream.uniform() < self.noise:
      move = stream.below(len(ACTIONS))
    prompt = layout.described() + observed(state)
    return Example(prompt=prompt, answer=_LETTERS[move], id=index)

  def target(self, example: Example) -> str:
    """The recorded move."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Returns whether it is that move."""
    return {base.OUTCOME: float(response == example.answer)}

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(tokens of the moves i32[B, 1], ones i32[B])."""
    from rl_jax.tasks import device_verifiers

    answers = [tokenizer.encode(example.answer) for example in examples]
    return device_verifiers.pad_rows(answers)

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    from rl_jax.tasks import device_verifiers

    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    right_B = device_verifiers.exact_match(
      response_BT, kept_BT, answer_BA, answer_length_B
    )
    return {base.OUTCOME: right_B}
