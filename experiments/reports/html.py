"""Renders a report as one self-contained HTML page.

Text from files cannot become markup: the template escapes it, embedded JSON has
no `<`, `>` or `&`, and the content security policy allows one script and one
style, by hash, and no requests.
"""

import base64
from collections.abc import Sequence
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any

import jinja2
import markupsafe

from experiments.flags import configuration, outputs
from experiments.reports import curves as report_curves
from experiments.reports import labels as labels_lib
from experiments.reports import rollouts as report_rollouts
from experiments.reports.workdirs import Run
from experiments.tables.method_difference import differences
from rl_jax import overrides, serialization
from rl_jax.runtime.writer import sole_writer

TEMPLATE = pathlib.Path(__file__).parent / 'template'
# The parts of the script of the page, in this order.
SCRIPTS = ('numbers', 'state', 'chart', 'curves', 'tables', 'rollouts')
# Metrics whose panels are open at first, and those of a run whose names begin
# so, after the first of them; the others are collapsed.
FAMILIES = ('reward/', 'episode/')
PANELS = (
  'reward/mean',
  'evaluation/pass_at_1',
  'policy/entropy',
  'policy/kl_ref',
  'policy/kl_old',
  'rollout/length',
  'policy/clip_fraction',
  'rollout/logp_gap_max',
  'train/grad_norm',
)


def render(
  title: str,
  runs: Sequence[Run] = (),
  *,
  baseline: str = '',
  tables: Sequence[dict[str, Any]] = (),
  notes: Sequence[str] = (),
  max_bytes: int = 8_000_000,
  reload_seconds: float = 0,
) -> str:
  """The page.

  Args:
    title: heading of the page.
    runs: as `workdirs.read_runs` returns.
    baseline: label of a run or name of a method; see `configurations`.
    tables: title, header, rows and hint of each.
    notes: sentences at the top; those of the runs are added.
    max_bytes: limit of rollouts in the page, shared by the runs.
    reload_seconds: the page loads itself again after this time; 0: never.
  """
  curves = report_curves.collect(runs)
  panels = main_panels(curves)
  rollouts, of_runs = _rollouts(runs, max_bytes)
  data = {
    'curves': curves,
    'panels': panels,
    'axes': report_curves.X_AXES,
    'rollouts': rollouts,
    'reload': reload_seconds,
  }
  style = (TEMPLATE / 'page.css').read_text(encoding='utf-8')
  script = script_text()
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATE),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
  )
  return environment.get_template('page.html').render(
    title=title,
    notes=[*notes, *of_runs],
    curves=curves['runs'],
    summary=report_curves.ends(curves, panels),
    curve_hint=_hint(curves),
    reload_seconds=reload_seconds,
    tables=[_without_empty(table) for table in tables],
    configurations=configurations(runs, baseline),
    data=embedded_json(data),
    style=markupsafe.Markup(style),
    script=markupsafe.Markup(script),
    style_hash=_hash(style),
    script_hash=_hash(script),
  )


def main_panels(curves: dict[str, Any]) -> list[str]:
  """PANELS with all rewards and numbers of episodes that the runs have."""
  names = {name for run in curves['runs'] for name in run['metrics']}
  more = [
    name
    for family in FAMILIES
    for name in sorted(names - {*PANELS})
    if name.startswith(family)
  ]
  first, *rest = PANELS
  return [first, *more, *rest]


def _rollouts(
  runs: Sequence[Run], max_bytes: int
) -> tuple[list[dict[str, Any]], list[str]]:
  """Responses of every run, and the notes on the runs, each of them once."""
  rollouts: list[dict[str, Any]] = []
  places: dict[str, list[str]] = {}  # note -> names of its runs
  for run, name in zip(runs, report_curves.names(runs), strict=True):
    found, more = report_rollouts.read(run, max_bytes // len(runs))
    rollouts.append({'name': name, **found})
    for note in [*run.notes, *more]:
      places.setdefault(note, []).append(name)
  return rollouts, [f'{_some(n)}: {note}' for note, n in places.items()]


def _some(names: Sequence[str]) -> str:
  """The first names, and how many there are."""
  if len(names) <= 4:
    return ', '.join(names)
  return f'{", ".join(names[:3])} and {len(names) - 3} others'


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
  """A table without the columns that have only a header."""
  kept = [
    i for i in range(len(table['header'])) if any(r[i] for r in table['rows'])
  ]

  def take(cells):
    return [cells[i] for i in kept]

  return table | {
    'header': take(table['header']),
    'rows': [take(cells) for cells in table['rows']],
  }


def script_text() -> str:
  """The script of the page."""
  parts = (TEMPLATE / f'{name}.js' for name in SCRIPTS)
  return '\n'.join(part.read_text(encoding='utf-8') for part in parts)


def embedded_json(value: Any) -> markupsafe.Markup:
  """JSON that is safe in a script element: it has no markup characters."""
  text = json.dumps(value, allow_nan=False, separators=(',', ':'))
  for character in '<>&':
    text = text.replace(character, f'\\u{ord(character):04x}')
  return markupsafe.Markup(text)


def _hash(text: str) -> str:
  digest = hashlib.sha256(text.encode()).digest()
  return 'sha256-' + base64.b64encode(digest).decode()


def configurations(runs: Sequence[Run], baseline: str) -> list[dict[str, Any]]:
  """Returns how each label differs from the baseline, as lines.

  The baseline is a label (default with several labels: the first) or a method
  of configs/methods (default with one label: grpo), and then only methods are
  compared. Raises ValueError, listing both kinds, if it is neither.
  """
  first = {run.label: run for run in reversed(runs)}
  labels = list(dict.fromkeys(run.label for run in runs))
  if not labels:
    return []
  base = baseline or (labels[0] if len(labels) > 1 else 'grpo')
  if base in first:
    reference, what = first[base].config, base
  else:
    name = base.partition('@')[0]
    known = [*labels, *configuration.names('configs.methods')]
    if name not in known:
      raise ValueError(overrides.unknown_name('baseline', base, known))
    reference, what = configuration.load_method(base), f'the method {base}'
  entries = []
  for label in labels:
    run = first[label]
    entries.append(
      {
        'title': f'{label}: the baseline'
        if label == base
        else f'{what} \u2192 {label}',
        'lines': _difference(reference, run.config),
        'missing': 'A configuration is missing: nothing to compare.',
        'json': run.config and serialization.to_json(run.config),
      }
    )
  return entries


def _difference(reference, config) -> list[str] | None:
  """Lines of a configuration against another, or against a method only."""
  if reference is None or config is None:
    return None
  if not hasattr(reference, 'method'):
    return differences(reference, config.method)
  return labels_lib.difference(reference, config)


def _hint(curves: dict[str, Any]) -> str:
  parts = [
    'Point at a curve, or use the arrow keys on it, to read values; drag over '
    'a stretch to zoom in, double-click to zoom out.'
  ]
  if len(curves['runs']) > 1:
    parts.append(
      'Runs of a group are joined by iteration: mean, and a band of 95% '
      "(Student's t); of two runs it goes from one to the other."
    )
  count, points = curves['iterations'], len(curves['steps'])
  if count > points:
    parts.append(
      f'{count:,} iterations are drawn as {points} means of neighbours; the '
      'band of a single run holds all its values.'
    )
  parts.append(
    'A triangle at the edge is a value that lies further from the curves than '
    'they are high.'
  )
  return ' '.join(parts)


def check_writable(out: str) -> None:
  """Raises ValueError if a page cannot be written there."""
  if os.path.isdir(out):
    raise ValueError(f'--out={out} is a directory: give the name of a file')
  outputs.check_regular('out', out)
  outputs.check_not_of_run('out', out)
  try:
    os.makedirs(os.path.dirname(out) or '.', exist_ok=True)
    with tempfile.TemporaryFile(dir=os.path.dirname(out) or '.'):
      pass
  except OSError as error:
    raise ValueError(f'--out={out} cannot be written: {error}') from None


def write(page: str, out: str) -> None:
  """Writes the page atomically."""
  with sole_writer().replacing(out) as file:
    file.write(page.encode(errors='replace'))
