"""The influence of a method and its pieces on the gradient, in a short run.

  python -m experiments.tools.influence --config=configs/worlds/chain.py
    --method=dapo --set=model.path=runs/chain_warm --iterations=4

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

import json
from typing import Any

from absl import flags

from experiments.flags import configuration, outputs
from experiments.reports import influence_run

_BASELINE = flags.DEFINE_string('baseline', None, 'Method to compare with.')
_ITERATIONS = flags.DEFINE_integer(
  'iterations', 4, 'Rollouts of the run.', lower_bound=1
)
configuration.define_flags()
_JSON = flags.DEFINE_bool('json', False, 'Print JSON instead of a table.')


def main(argv):
  """Runs and prints."""
  del argv
  values = flags.FLAGS
  name = values.method
  if not name and not _BASELINE.value and values.config.endswith('.json'):
    raise ValueError(
      f'--config={values.config} does not say what its method is called: give '
      '--baseline, the method to compare with'
    )
  config = influence_run.configured(
    configuration.from_flags(),
    _BASELINE.value
    or configuration.baseline_of(name or configuration.DEFAULT_METHOD),
    _ITERATIONS.value,
  )
  found = influence_run.measure(config)
  if _JSON.value:
    print(json.dumps(outputs.finite(found), indent=2))
  else:
    print(table(found))


def table(results: dict[str, Any]) -> str:
  """Markdown: the method in front, then its pieces."""
  lines = [
    '| against | cos | ratio | tokens |',
    '|---|---|---|---|',
    f'| the baseline | {results["cos"]:.4f} | {results["ratio"]:.4f} | |',
  ]
  for path, x in results['pieces'].items():
    lines.append(
      f'| without {path} | {x["cos"]:.4f} | {x["ratio"]:.4f} | '
      f'{100 * x["tokens"]:.1f}% |'
    )
  shares = ('tokens_stopped', 'rows_changed', 'groups_dropped', 'selection')
  lines += ['', f'acts: {"yes" if results["acts"] else "no"}']
  lines += [f'{name}: {100 * results[name]:.1f}%' for name in shares]
  return '\n'.join(lines)


if __name__ == '__main__':
  configuration.run(main)
