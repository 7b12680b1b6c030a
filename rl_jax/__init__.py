"""On-policy reinforcement learning of language models in JAX.

`train` and `evaluate` are functions of an `ExperimentConfig`, which holds a
`Method`, a `Task`, a model and sizes. The pieces that methods are made of are
in `shaping`, `credit`, `losses`, `weights`, `regularizers`, `aggregation`,
`selection`, `logits`, `preferences` and `wrappers` (of rollouts).

Importing this package imports nothing else: a name is imported when it is
first used, so that workers which judge responses never import JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from rl_jax import models as models
  from rl_jax import tasks as tasks
  from rl_jax.api import evaluate as evaluate
  from rl_jax.api import train as train
  from rl_jax.config import ExperimentConfig as ExperimentConfig
  from rl_jax.method import Method as Method
  from rl_jax.pieces import aggregation as aggregation
  from rl_jax.pieces import credit as credit
  from rl_jax.pieces import logits as logits
  from rl_jax.pieces import losses as losses
  from rl_jax.pieces import policies as policies
  from rl_jax.pieces import preferences as preferences
  from rl_jax.pieces import regularizers as regularizers
  from rl_jax.pieces import selection as selection
  from rl_jax.pieces import shaping as shaping
  from rl_jax.pieces import statistics as statistics
  from rl_jax.pieces import weights as weights
  from rl_jax.rollouts import wrappers as wrappers
  from rl_jax.tasks.base import Task as Task

__version__ = '0.2.0'

# Public name -> the module that has it.
_NAMES = {
  'train': 'rl_jax.api',
  'evaluate': 'rl_jax.api',
  'ExperimentConfig': 'rl_jax.config',
  'Method': 'rl_jax.method',
  'Task': 'rl_jax.tasks.base',
}
# Public name -> the module that it is.
_MODULES = {
  'models': 'rl_jax.models',
  'tasks': 'rl_jax.tasks',
  'aggregation': 'rl_jax.pieces.aggregation',
  'credit': 'rl_jax.pieces.credit',
  'logits': 'rl_jax.pieces.logits',
  'losses': 'rl_jax.pieces.losses',
  'policies': 'rl_jax.pieces.policies',
  'preferences': 'rl_jax.pieces.preferences',
  'regularizers': 'rl_jax.pieces.regularizers',
  'selection': 'rl_jax.pieces.selection',
  'shaping': 'rl_jax.pieces.shaping',
  'statistics': 'rl_jax.pieces.statistics',
  'weights': 'rl_jax.pieces.weights',
  'wrappers': 'rl_jax.rollouts.wrappers',
}


def __getattr__(name: str) -> Any:
  if name in _MODULES:
    return importlib.import_module(_MODULES[name])
  if name in _NAMES:
    return getattr(importlib.import_module(_NAMES[name]), name)
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
  return sorted({*globals(), *_NAMES, *_MODULES})
