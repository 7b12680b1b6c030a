"""The influence of a method in a short run; see experiments.tools.influence."""

import dataclasses
import os
import tempfile
from typing import Any

import numpy as np

from experiments.flags import configuration
from rl_jax.config import DiagnosticsConfig, EvaluationConfig, ExperimentConfig
from rl_jax.measures import influence as influence_lib
from rl_jax.planning import memory_check
from rl_jax.records import metrics
from rl_jax.runs.loop import Trainer

_PREFIX = 'influence/'


def configured(
  config: ExperimentConfig, baseline: str, iterations: int
) -> ExperimentConfig:
  """A short run that measures every step and evaluates nothing."""
  other = configuration.load_method(baseline)
  critic = config.method.reads_values or other.reads_values
  model = config.model
  if critic:
    outputs = [one.num_values for one in (config.method, other, model)]
    model = dataclasses.replace(model, value_head=True, num_values=max(outputs))
  return dataclasses.replace(
    config,
    iterations=iterations,
    model=model,
    evaluation=EvaluationConfig(every=0),
    diagnostics=DiagnosticsConfig(influence_every=1, baseline=other),
  )


def measure(config: ExperimentConfig) -> dict[str, Any]:
  """Means over the run; see experiments.tools.influence.

  `pieces` has cos, ratio and tokens by path. A piece without an entry cannot be
  taken out: the others would be no method.
  """
  with tempfile.TemporaryDirectory() as workdir:
    with memory_check.guarded(config):
      trainer = Trainer(config, workdir)
      trainer.run()
    rows = metrics.read_jsonl(os.path.join(workdir, 'metrics.jsonl'))
    selector = trainer.parts.collector.selector
    state = selector.state
  names = {name for row in rows for name in row if name.startswith(_PREFIX)}

  def mean(name):
    return float(np.mean([row[name] for row in rows]))

  found: dict[str, Any] = {'pieces': {}}
  for name in sorted(names):
    *path, number = name.removeprefix(_PREFIX).split('/')
    where = found['pieces'].setdefault(path[0], {}) if path else found
    where[number] = mean(name)
  found['groups_dropped'] = 1.0 - 1.0 / mean('rollout/rounds')
  if config.method.group_filter is None:
    found['groups_dropped'] = 0.0
  found['selection'] = 0.0
  if config.method.selector is not None:
    found['selection'] = influence_lib.selection(
      config.method.selector, state, config.rollout.num_prompts
    )
  return {'acts': influence_lib.acts(found), **found}
