"""Renders a report as one self-contained HTML page.

Text from files cannot become markup: the template escapes it, embedded JSON has
no `<`, `>` or `&`, and the content security policy allows one script and one
style, by hash, and no requests.
"""

import base64
import collections
from collections.abc import Sequence
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any

import jinja2
import markupsafe

from experiments.flags import configuration
from experiments.reports import rollouts as report_rollouts
from experiments.reports import runs as report_runs
from experiments.reports.runs import Run
from experiments.tables.method_difference import differences
from rl_jax import overrides, serialization

TEMPLATE = pathlib.Path(__file__).parent / 'template'
# Metrics whose panels are open at first; the others are collapsed.
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
) -> str:
  """The page.

  Args:
    title: heading of the page.
    runs: as `report_runs.read_runs` returns.
    baseline: label of a run or name of a method; see `configurations`.
    tables: title, header, rows and hint of each.
    notes: sentences at the top; those of the runs are added.
    max_bytes: limit of rollouts in the page, shared by the runs.
  """
  curves = report_runs.curves(runs)
  rollouts: list[dict[str, Any]] = []
  places: dict[str, list[str]] = {}  # note -> names of its runs
  for run, name in zip(runs, _names(runs), strict=True):
    found, more = report_rollouts.read(run, max_bytes // len(runs))
    rollouts.append({'name': name, **found})
    for note in [*run.notes, *more]:
      places.setdefault(note, []).append(name)
  notes = [
    *notes,
    *(f'{", ".join(paths)}: {note}' for note, paths in places.items()),
  ]
  data = {
    'curves': curves,
    'panels': list(PANELS),
    'axes': report_runs.X_AXES,
    'rollouts': rollouts,
  }
  style, script = (
    (TEMPLATE / name).read_text(encoding='utf-8')
    for name in ('page.css', 'page.js')
  )
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(TEMPLATE),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
  )
  return environment.get_template('page.html').render(
    title=title,
    notes=notes,
    curves=curves,
    summary=_summary(curves),
    curve_hint=_hint(curves),
    tables=tables,
    configurations=configurations(runs, baseline),
    data=embedded_json(data),
    style=markupsafe.Markup(style),
    script=markupsafe.Markup(script),
    style_hash=_hash(style),
    script_hash=_hash(script),
  )


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
  """How each label differs from the baseline, as lines.

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
  """Lines of a configuration against another, or against a method alone."""
  if reference is None or config is None:
    return None
  method = getattr(reference, 'method', reference)
  lines = differences(method, config.method)
  if method is reference:
    return lines
  return lines + [
    line
    for line in serialization.difference(reference, config)
    if not line.startswith('method')
  ]


def _names(runs: Sequence[Run]) -> list[str]:
  """The label of each run, with its directory if several share the label."""
  count = collections.Counter(run.label for run in runs)
  return [
    run.label
    if count[run.label] == 1
    else f'{run.label}, {os.path.basename(os.path.normpath(run.path))}'
    for run in runs
  ]


def _summary(curves: list[dict[str, Any]]) -> dict[str, Any]:
  """First and last value of the panels' metrics, as text."""
  rows = []
  for name in PANELS:
    cells = []
    for curve in curves:
      mean = curve['metrics'].get(name, {}).get('mean', [])
      known = [value for value in mean if value is not None]
      text = f'{known[0]:.4g} \u2192 {known[-1]:.4g}' if known else 'none'
      cells.append(text)
    if any(name in curve['metrics'] for curve in curves):
      rows.append((name, cells))
  return {'labels': [curve['label'] for curve in curves], 'rows': rows}


def _hint(curves: list[dict[str, Any]]) -> str:
  parts = ['Point at a curve, or use the arrow keys on it, to read values.']
  if any(curve['seeds'] > 1 for curve in curves):
    parts.append(
      'Seeds are joined by iteration: mean, and a band from the lowest to the '
      'highest.'
    )
  long = max((curve['iterations'] for curve in curves), default=0)
  if long > report_runs.MAX_POINTS:
    parts.append(
      f'{long:,} iterations are drawn as {report_runs.MAX_POINTS} means of '
      'neighbours; the band of a single run holds all its values.'
    )
  return ' '.join(parts)


def check_writable(out: str) -> None:
  """Raises ValueError if a page cannot be written there."""
  if os.path.isdir(out):
    raise ValueError(f'--out={out} is a directory: give the name of a file')
  try:
    os.makedirs(os.path.dirname(out) or '.', exist_ok=True)
    with tempfile.TemporaryFile(dir=os.path.dirname(out) or '.'):
      pass
  except OSError as error:
    raise ValueError(f'--out={out} cannot be written: {error}') from None


def write(page: str, out: str) -> None:
  """Writes the page atomically."""
  temporary = f'{out}.tmp'
  with open(temporary, 'w', encoding='utf-8', errors='replace') as file:
    file.write(page)
  os.replace(temporary, out)
