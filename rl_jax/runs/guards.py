"""Limits at which a run ends by itself, checked on every row of metrics."""

from collections.abc import Sequence
from typing import Any

from rl_jax.config import GuardConfig

# Iterations: one may be an accident of the machine.
MOST_UNJUDGED_IN_A_ROW = 3


class StopRunError(RuntimeError):
  """A guard ended the run; the last checkpoint is valid."""


def check(
  guards: GuardConfig, row: dict[str, Any], skipped_in_a_row: int, workdir: str
) -> None:
  """Raises StopRunError if a limit of the configuration is reached.

  skipped_in_a_row: iterations, this one included, without a finite step.
  """
  if skipped_in_a_row >= guards.max_skipped_in_a_row:
    raise StopRunError(
      f'{skipped_in_a_row} iterations in a row had a non-finite loss or '
      'gradient (guards.max_skipped_in_a_row); parameters are those before; '
      f'the batches are in {workdir}/skipped_*.npz'
    )
  gap = row['rollout/logp_gap_max']
  if guards.max_logp_gap is not None and not gap <= guards.max_logp_gap:
    raise StopRunError(
      f'sampler and trainer disagree by {gap} nats on a token, more than '
      f'guards.max_logp_gap = {guards.max_logp_gap}'
    )


def check_judged(errors: Sequence[str | None], in_a_row: int) -> int:
  """Iterations in a row, this one included, of which no sample was judged.

  errors: as of why_unjudged. in_a_row: those before it.

  Raises: StopRunError after MOST_UNJUDGED_IN_A_ROW, with a reason: nothing
    can be learned.
  """
  why = why_unjudged(errors)
  if not why:
    return 0
  in_a_row += 1
  if in_a_row >= MOST_UNJUDGED_IN_A_ROW:
    raise StopRunError(
      f'no sample of {in_a_row} iterations in a row could be judged '
      f'(rollout/reward_errors): {why}'
    )
  return in_a_row


def why_unjudged(errors: Sequence[str | None]) -> str:
  """Why no sample of an iteration was judged; '' if one was.

  errors: of its samples, None for one that was judged.
  """
  if not errors or None in errors:
    return ''
  lines = (errors[0] or '').strip().splitlines() or ['no reason is known']
  return f'{lines[-1]:.300}'


def check_end(unjudged: str) -> None:
  """Raises StopRunError at the end of a run whose last iteration was in vain.

  unjudged: `why_unjudged` of that iteration.
  """
  if unjudged:
    raise StopRunError(
      'no sample of the last iteration could be judged '
      f'(rollout/reward_errors): {unjudged}'
    )


def first_failure(
  guards: GuardConfig, rows: list[dict[str, Any]]
) -> str | None:
  """The limit that the rows of a finished run reached first, or None."""
  in_a_row = 0
  for row in rows:
    if 'train/skipped' not in row:  # the evaluation before training
      continue
    in_a_row = in_a_row + 1 if row['train/skipped'] > 0 else 0
    try:
      check(guards, row, in_a_row, 'no directory')
    except StopRunError as error:
      return f'iteration {row["step"]}: {str(error).split(" (", 1)[0]}'
  return None
