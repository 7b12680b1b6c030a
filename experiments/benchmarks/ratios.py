"""Baselines that are timed in turn with a stage, and the ratios of both."""

import dataclasses
import functools

import numpy as np

FULL_WIDTH = 64
PARTS = ('generate', 'update')  # of a step; others take milliseconds


def full_width(shape):
  """The shape with 64 rows, timed without an end token."""
  return dataclasses.replace(shape, num_prompts=FULL_WIDTH // shape.group_size)


def equal_lengths(shape, mean_length):
  """The shape with rows that all end at the mean length."""
  return dataclasses.replace(
    shape, new_tokens=max(1, min(round(mean_length), shape.new_tokens))
  )


def has_full_width(stage, mean_length):
  """True if the stage is compared with rows that have equal lengths."""
  return stage == 'generate' and mean_length > 0


def check_groups(shape, stage, mean_length, devices):
  """Raises ValueError if the timed groups do not divide evenly by device."""
  if shape.num_prompts % devices:
    raise ValueError(
      f'num_prompts={shape.num_prompts}: {devices} devices share the groups '
      'evenly, so it must be a multiple of them'
    )
  whole = FULL_WIDTH % (devices * shape.group_size) == 0
  if has_full_width(stage, mean_length) and not whole:
    raise ValueError(
      f'group_size={shape.group_size}: a rollout with mean_length is compared '
      f'with {FULL_WIDTH} rows, which must be whole groups, equally many on '
      f'each of {devices} devices'
    )


def calls_in_turn(stages, make, shape, stage, mean_length):
  """The stage and what it is compared with, by name, in calling order.

  make: the Stages of a shape, with some of the benchmark's options replaced.
  """
  names = (*PARTS, stage) if stage == 'step' else (stage,)
  calls = {name: functools.partial(stages.call, name) for name in names}
  if stage == 'generate' and not mean_length:
    calls['prefill'] = functools.partial(stages.call, 'prefill')
  if stages.capacity:
    calls['unpacked'] = functools.partial(make(shape, pack=False).call, stage)
  if stages.drafts:
    calls['plain'] = functools.partial(make(shape, drafts=None).call, stage)
  elif has_full_width(stage, mean_length):
    # All rows at a time, without slots, with room for all their tokens.
    for name, other in (
      ('full_width', full_width(shape)),
      ('equal_lengths', equal_lengths(shape, mean_length)),
    ):
      other = make(other, mean_length=0.0, slots=None, cache_tokens=None)
      calls[name] = functools.partial(other.call, stage)
  return calls


def compared(stages, shape, stage, times, generated, mean_length):
  """Ratios of the stage's seconds to those timed in turn with it."""

  def over(name):
    return float(np.median(np.divide(times[stage], times[name])))

  if 'unpacked' in times:
    return {'capacity': stages.capacity, 'times_unpacked': over('unpacked')}
  if 'plain' in times:
    accepted = float(stages.drafts.metrics()['rollout/accepted_length'])
    return {'times_plain': over('plain'), 'accepted_length': accepted}
  if 'full_width' in times:

    def tokens(other):
      return other.rows * other.new_tokens / generated

    full, equal = full_width(shape), equal_lengths(shape, mean_length)
    each = float(np.median(times['full_width'])) / (tokens(full) * generated)
    return {
      'full_width_seconds_per_token': each,
      'times_full_width': over('full_width') * tokens(full),
      'times_equal_lengths': over('equal_lengths') * tokens(equal),
      'reserved_over_needed': stages.reserved_over_needed,
    }
  if stage != 'step':
    return {}
  parts = {name: float(np.median(times[name])) for name in PARTS}
  together = np.sum([times[name] for name in PARTS], axis=0)
  ratio = float(np.median(together / times[stage]))
  return {'stage_seconds': parts, 'stages_over_step': ratio}
