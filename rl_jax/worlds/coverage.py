"""A walk that should see many cells: the reward is a set function."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Task

_MOVES = {'N': (0, -1), 'E': (1, 0), 'S': (0, 1), 'W': (-1, 0)}


@dataclasses.dataclass(frozen=True)
@checked
class Coverage(Task):
  """Prompt '@', response 'NNESW..': a walk on a grid that joins at its edges.

  F(walk) = distinct cells entered in the first `steps` moves, the first cell
  not counted, over `steps`: monotone and submodular. Components:
    coverage: F, or 0 if a character is not a move.
    outcome: 1 if F = 1, a walk of `steps` moves that meets no cell twice.
  The first cell does not matter, so all prompts are the same text. Tokens have
  `marginal_gain_BT`: what a move adds to F.
  Source: "Submodular Reinforcement Learning", its coverage task at a small
  size.
  """

  size: int = ranged(4, 2, 16)  # rows and columns
  steps: int = ranged(12, 1)
  num_train: int = ranged(64, 1)
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '@NESW'

  def __post_init__(self):
    if self.steps >= self.size**2:
      raise ValueError(
        f'Coverage.steps = {self.steps} must be below size^2 = '
        f'{self.size**2}: no longer walk meets no cell twice'
      )

  def num_prompts(self, split: str) -> int:
    """num_train, and 8 in the other splits."""
    base.check_split(split)
    return self.num_train if split == 'train' else 8

  def example(self, split: str, index: int) -> Example:
    """The one prompt; the answer is a walk that covers most."""
    base.check_index(self, split, index)
    rows = 'E' * (self.size - 1) + 'S'
    walk = (rows * self.size)[: self.steps]
    return Example(prompt='@', answer=walk, id=index)

  def target(self, example: Example) -> str:
    """Row by row."""
    return example.answer

  def gains(self, response: str) -> list[float]:
    """Returns what each character adds to F."""
    x, y, seen, found = 0, 0, {(0, 0)}, []
    for i, move in enumerate(response):
      if move not in _MOVES:
        return found + [0.0] * (len(response) - i)
      right, down = _MOVES[move]
      x, y = (x + right) % self.size, (y + down) % self.size
      is_new = i < self.steps and (x, y) not in seen
      seen.add((x, y))
      found.append(is_new / self.steps)
    return found

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    legal = set(response) <= set(_MOVES)
    covered = round(sum(self.gains(response)) * self.steps) if legal else 0
    return {
      base.OUTCOME: float(covered == self.steps),
      'coverage': covered / self.steps,
    }

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """Nothing is compared: (zeros i32[B, 1], ones i32[B])."""
    from rl_jax.tasks import device_verifiers

    del tokenizer
    return device_verifiers.pad_rows([[0] for _ in examples])

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    del answer_BA, answer_length_B
    new_BT, legal_B = self._walk(response_BT, length_B, tokenizer)
    covered_B = jnp.where(legal_B, new_BT.sum(1), 0)
    return {
      base.OUTCOME: (covered_B == self.steps).astype('float32'),
      'coverage': covered_B / self.steps,
    }

  def row_inputs_device(self, response_BT, length_B, tokenizer) -> dict:
    """marginal_gain_BT, see `gains`."""
    new_BT, _ = self._walk(response_BT, length_B, tokenizer)
    return {'marginal_gain_BT': new_BT / self.steps}

  def _walk(self, response_BT, length_B, tokenizer):
    """(a move enters a new cell i32[B, T], all are moves bool[B])."""
    import jax
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers

    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    ids = jnp.asarray([tokenizer.encode(move)[0] for move in _MOVES])
    is_BT4 = response_BT[:, :, None] == ids[None, None]
    legal_BT = is_BT4.any(2) | ~kept_BT
    # After a character that is not a move nothing counts.
    live_BT = kept_BT & (jnp.cumsum(~legal_BT, axis=1) == 0)
    step_BT2 = is_BT4.astype(jnp.int32) @ jnp.asarray(list(_MOVES.values()))
    place_BT2 = jnp.cumsum(step_BT2 * live_BT[:, :, None], axis=1) % self.size
    cell_BT = place_BT2[:, :, 0] * self.size + place_BT2[:, :, 1]
    number_BT = jnp.cumsum(live_BT, axis=1) - 1

    def move(seen_BC, inputs):
      cell_B, live_B, number_B = inputs
      here_BC = jax.nn.one_hot(cell_B, self.size**2, dtype=bool)
      here_BC &= live_B[:, None]
      new_B = (here_BC & ~seen_BC).any(1) & (number_B < self.steps)
      return seen_BC | here_BC, new_B

    # No row of a mesh is another's: the start is made from an input.
    start_BC = jnp.zeros_like(cell_BT[:, :1] > 0) | (
      jnp.arange(self.size**2)[None] == 0
    )
    _, new_TB = jax.lax.scan(
      move, start_BC, (cell_BT.T, live_BT.T, number_BT.T)
    )
    return new_TB.T.astype(jnp.int32), legal_BT.all(1)
