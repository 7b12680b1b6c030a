"""Keeps the error of a background save until it can be raised."""

from collections.abc import Callable

from absl import logging

from rl_jax.runtime import processes


class CheckpointError(RuntimeError):
  """Saving failed, or no checkpoint in the directory can be read."""


class FailedSave:
  """The failure of a background save; on_save_error as in Checkpointer.

  check: raises what matters more, if there is anything (`Writer.check`).
  """

  def __init__(self, on_save_error: str, check: Callable[[], None]):
    if on_save_error not in ('stop', 'warn'):
      raise ValueError(
        f'on_save_error = {on_save_error!r} is neither stop nor warn'
      )
    self._stops = on_save_error == 'stop'
    self._check = check
    self._found: tuple[int, BaseException] | None = None

  def record(self, step: int, error: BaseException) -> None:
    """Keeps the error."""
    self._found = (step, error)

  def share(self) -> int | None:
    """Makes a failure on one process one on all; returns the step, if any.

    All processes must call it.
    """
    mine = None
    if self._found is not None:
      mine = [self._found[0], _cause(self._found[1])]
    failed = [f for f in processes.gather(mine) if f is not None]
    if failed and self._found is None:
      step, cause = failed[0]
      self._found = (step, RuntimeError(f'on another process: {cause}'))
    return failed[0][0] if failed else None

  def report(
    self, directory: object, valid_steps: Callable[[], list[int]]
  ) -> None:
    """Raises CheckpointError or warns, once, if a save has failed."""
    if self._found is None:
      return
    (step, error), self._found = self._found, None
    self._check()
    valid = valid_steps()
    message = (
      f'saving checkpoint {step} to {directory} failed: {_cause(error)}. '
      + (f'The last valid checkpoint is step {valid[-1]}.' if valid else '')
    )
    if self._stops:
      raise CheckpointError(message) from error
    logging.warning('%s The run continues.', message)


def _cause(error: BaseException) -> str:
  if 'No space left' in str(error):
    return 'No space left on device'
  return f'{type(error).__name__}: {error}'[:400]
