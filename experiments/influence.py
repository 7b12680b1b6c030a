"""What a method and each of its pieces do to the gradient, in a short run.

  python -m experiments.influence --config=configs/chain.py --method=dapo
    --set=model.path=runs/chain_warm --iterations=4

On the minibatches of the method's own rollouts: cosine and ratio of norms of
its gradient against that of its baseline (--baseline; by default what its
configuration declares), then against itself with one piece taken out; the share
of trained tokens that a piece moves otherwise, and of those with an advantage
that the loss does not move; the share of rows that a rollout piece or a
transform of the logits changed; of groups that were dropped; the total
variation between the selector's draws and uniform ones. Numbers are means over
all optimizer steps. What changes nothing has cosine 1 and ratio 1:
`acts: no` says so of the whole method.

A model with a value head is used where the method or its baseline needs one.
In a training run --set=diagnostics.influence_every=10 writes the same numbers
as metrics.
"""

import dataclasses
import json
import os
import tempfile
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration
from rl_jax.config import DiagnosticsConfig, EvaluationConfig, ExperimentConfig
from rl_jax.planning import memory_check
from rl_jax.records import metrics
from rl_jax.runs import influence as influence_lib
from rl_jax.runs.loop import Trainer

_BASELINE = flags.DEFINE_string('baseline', None, 'Method to compare with.')
_ITERATIONS = flags.DEFINE_integer(
  'iterations', 4, 'Rollouts of the run.', lower_bound=1
)
configuration.define_flags()
_JSON = flags.DEFINE_bool('json', False, 'Print JSON instead of a table.')
_PREFIX = 'influence/'


def main(argv):
  """Runs and prints."""
  del argv
  values = flags.FLAGS
  config = configured(
    configuration.from_flags(),
    _BASELINE.value
    or configuration.baseline_of(values.method or configuration.DEFAULT_METHOD),
    _ITERATIONS.value,
  )
  found = measure(config)
  print(json.dumps(found, indent=2) if _JSON.value else table(found), end='\n')


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
  """Means over the run; see the head of this file.

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
  mean = lambda name: float(np.mean([row[name] for row in rows]))
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


def table(found: dict[str, Any]) -> str:
  """Markdown: the method in front, then its pieces."""
  lines = [
    '| against | cos | ratio | tokens |',
    '|---|---|---|---|',
    f'| the baseline | {found["cos"]:.4f} | {found["ratio"]:.4f} | |',
  ]
  for path, x in found['pieces'].items():
    lines.append(
      f'| without {path} | {x["cos"]:.4f} | {x["ratio"]:.4f} | '
      f'{100 * x["tokens"]:.1f}% |'
    )
  shares = ('tokens_stopped', 'rows_changed', 'groups_dropped', 'selection')
  lines += ['', f'acts: {"yes" if found["acts"] else "no"}']
  lines += [f'{name}: {100 * found[name]:.1f}%' for name in shares]
  return '\n'.join(lines)


if __name__ == '__main__':
  configuration.run(main)
