"""Trackers, which send rows of metrics to services: a file for each.

A tracker has a name, `start(next_step)` before its first row, `log(row)` and
`close()`; any of them may raise. `Guarded` keeps that from the run.
"""

from rl_jax.records.trackers.guarded import Guarded, InBackground
from rl_jax.records.trackers.services import TrackingConfig, check, make
from rl_jax.records.trackers.tensorboard import TensorBoard

__all__ = [
  'Guarded',
  'InBackground',
  'TensorBoard',
  'TrackingConfig',
  'check',
  'make',
]
