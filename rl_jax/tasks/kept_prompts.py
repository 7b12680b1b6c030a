"""The prompts of a task that a file lists."""

import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks import wrapped
from rl_jax.tasks.sources import BadRowError


@dataclasses.dataclass(frozen=True)
@checked
class KeptPrompts(wrapped.Selected):
  """A task whose train split has only the prompts of the rows of a file.

    KeptPrompts(Calculator(), path='deficient.jsonl')

  path: rows with a text `prompt`, as `experiments.select_rows` keeps them. The
  prompts are in the order of the task, and one that it has several times is
  kept as often; rewards and responses are those of the task, and so are the
  other splits.
  """

  task: Any
  path: str = ''
  max_row_bytes: int = ranged(1_000_000, 1)

  def __post_init__(self):
    super().__post_init__()
    if not self.path:
      raise ValueError("KeptPrompts.path = '': expected a file of rows")

  def places(self, split: str) -> list[int]:
    """The indices of the prompts that are kept; of other splits all.

    Raises: ValueError naming a prompt of the file that the task does not have.
    """
    everything = range(self.task.num_prompts(split))
    if split != 'train':
      return list(everything)
    kept = self._listed()
    found = {
      i: prompt
      for i in everything
      if (prompt := self.task.example(split, i).prompt) in kept
    }
    unknown = kept - set(found.values())
    if unknown or not found:
      named = sorted(unknown)[0] if unknown else None
      raise ValueError(
        f'KeptPrompts.path = {self.path!r}: {len(unknown)} of {len(kept)} '
        f'prompts, as {named!r}, are not in the train split of '
        f'{type(self.task).__name__}'
      )
    return list(found)

  def _listed(self) -> set[str]:
    """The prompts of the file."""
    found = set()
    for _, number, record in rows_lib.read_records(
      self.path, 'train', self.max_row_bytes, None
    ):
      if isinstance(record, BadRowError):
        raise record
      prompt = record.get('prompt')
      if not isinstance(prompt, str):
        raise ValueError(
          f'KeptPrompts.path = {self.path!r}: row {number} has the prompt '
          f'{prompt!r:.80}, and a text is expected'
        )
      found.add(prompt)
    return found
