"""Pages of recipes: published numbers, commands, cost, traps, what is open.

  python docs/reproductions.py

writes docs/reproductions/, which is committed; a test says when it is stale.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments.papers import (  # noqa: E402
  data_files,
  grading,
  pods,
  reasons,
)
from experiments.papers import recipe as recipe_lib  # noqa: E402
from experiments.tables import cells, published  # noqa: E402

OUT = pathlib.Path(__file__).parent / 'reproductions'
NOTHING = 'Run on an accelerator: nothing yet.'
NO_PLAN = 'Nothing is planned: the recipe measures released models.'
UNITS = (
  'Published numbers are in the units of the paper. Ours are percent: the mean '
  'over seeds with its 95% interval, of one seed that over problems.'
)


def pages() -> dict[str, str]:
  """Name of a page -> its text."""
  found = {name: page(name) for name in recipe_lib.names()}
  found['graders'] = graders(grading.results())
  return found | {'index': index(recipe_lib.names())}


def index(names: list[str]) -> str:
  """All recipes: rows, pods, memory and hours by plan and as stated."""
  lines = [
    '# Published tables',
    '',
    'A recipe holds what a published table takes to be made again: data,',
    'prompt, reward, rows, schedule, evaluation and published numbers. Each is',
    'tried in miniature by the tests; none has been run at the scale of its',
    'paper.',
    '',
    '```sh',
    'python -m experiments.data --paper=NAME --weights',
    'python -m experiments.sweep --paper=NAME --scale=paper --workdir=runs/N',
    'python -m experiments.table --paper=NAME --scale=paper --workdir=runs/N',
    '```',
    '',
    '`--scale=tiny` trains a tiny model on rows written by hand for two',
    'iterations, to try a recipe on any machine.',
    '',
    'Memory and hours are those of the row and the pod that are named; the',
    'page of a recipe has all others. Memory is GB of a device: by arithmetic,',
    'and of the largest program by the compiler of the pod, where the row was',
    'compiled. Hours by plan are a lower bound at full response lengths. A',
    'recipe that trains nothing measures released models.',
    '',
    '| recipe | rows | row, pod | memory by plan / of a device | by compiler | '
    'hours by plan | hours as stated | hardware as stated | run on |',
    '|---|---|---|---|---|---|---|---|---|',
  ]
  lines += [f'| {" | ".join(_summary(name))} |' for name in names]
  lines += [
    '',
    '[Graders](graders.md) compares the graders of recipes with released ones.',
  ]
  toc = '\n'.join([*names, 'graders'])
  lines += ['', f'```{{toctree}}\n:hidden:\n\n{toc}\n```']
  return '\n'.join(lines) + '\n'


def _summary(name):
  """The cells of a recipe: its first row that was compiled, else its first."""
  recipe, lines = recipe_lib.load(name), pods.read(name)
  rows = len(recipe.rows) or f'{len(recipe.measured)}, measured only'
  stated = [recipe.hours or 'not stated', recipe.hardware or 'not stated']
  run = ', '.join(sorted({str(x['device']) for x in published.runs_of(name)}))
  cells_of = [f'[{recipe.title}]({name}.md)', str(rows)]
  if not lines:
    return [*cells_of, '-', '-', '-', '-', *stated, run or 'nothing yet']
  line = next((x for x in lines if 'compiled' in x), lines[0])
  compiled = 'not compiled'
  if 'compiled' in line:
    compiled = f'{_largest(line["compiled"]) / GB:.1f}'
  return [
    *cells_of,
    f'`{line["row"]}`, {line["target"]}',
    f'{line["needed"] / GB:.1f} / {line["limit"] / GB:.0f}',
    compiled,
    f'{line["hours"]:.1f}',
    *stated,
    run or 'nothing yet',
  ]


def _largest(compiled):
  """Bytes of the program that needs most."""
  return max(one['memory'] for one in compiled['programs'].values())


def page(name: str) -> str:
  """Everything about one recipe."""
  recipe = recipe_lib.load(name)
  runs = published.runs_of(name)
  parts = [
    f'# {recipe.title}',
    f'{recipe.paper}; {recipe.table}. Source: {recipe.source}. Where the '
    f'paper and its code differ this recipe follows the '
    f'{recipe.follows}.'.replace('the paper.', 'paper.'),
    NOTHING if not runs else '',
    f'**No published numbers.** {recipe.unpublished}.'
    if recipe.unpublished
    else '',
    '## Table',
    cells.render(published.cells(name, runs), 'markdown'),
    UNITS,
    _list('Left out', [f'`{x}`: {why}' for x, why in recipe.left_out.items()]),
    _list('Not measured', [f'`{x}`: {y}' for x, y in recipe.missing.items()]),
    f'**Protocol.** {recipe.protocol}.',
    f'**End of training.** {recipe.stop}.',
    f'**Hardware as stated.** {recipe.hardware or "not stated"}. **Hours as '
    f'stated.** {recipe.hours or "not stated"}.',
    '## Plan',
    _plan(pods.read(name)) if pods.read(name) else NO_PLAN,
    '## Commands',
    _commands(name, recipe),
    _small(name, recipe),
    '## Data',
    _data(recipe),
    _list('Prompts', [_prompt(*one) for one in recipe.prompts]),
    _list('Traps', recipe.traps),
    _list('Transcribed, not read as text', recipe.transcribed),
    _list('Unverified', recipe.unverified),
    _list('Weaker than the original', recipe.weaker),
  ]
  return '\n\n'.join(part.rstrip() for part in parts if part) + '\n'


def graders(found: dict) -> str:
  """What the graders of recipes accept, and how they agree with others."""
  parts = [
    '# Graders',
    'Public files as they are published, and responses made of their right and '
    'wrong answers (`experiments/papers/made_up.py`): no model wrote them. '
    'Commands:',
    '```sh\npython -m experiments.papers.agreement --update\n'
    'python -m experiments.papers.agreement --python=PYTHON '
    '--checkouts=FOLDER --update\n```',
    'PYTHON is of an environment with the packages that '
    '`experiments/papers/released_graders.py` names; FOLDER has the '
    'repositories whose graders are in no package.',
    '## Right answers',
    'A right answer, in the mark that its grader looks for, should be right. '
    'Rows that are not read have no right answer that the grader can parse.',
    _golds(found['golds']),
    '## Agreement',
    f'The first {found["rows"]} problems of each file. A difference has a '
    'reason, or it counts as open.',
    _agreement(found['comparisons']),
    '## Differences',
    'By released grader and reason; `ours`: only our grader accepts.',
    _differences(found['comparisons']),
  ]
  return '\n\n'.join(parts) + '\n'


def _golds(lines):
  table = [
    '| file | from | grader | right answers | refused | rows not read |',
    '|---|---|---|---|---|---|',
  ]
  refused = []
  for line in lines:
    start = (
      f'| {line["file"]} | {line["from"]} | `{line["extract"]}`, '
      f'`{line["verifier"]}` |'
    )
    if line.get('missing'):
      table.append(f'{start} not here | - | - |')
      continue
    table.append(
      f'{start} {line["golds"]} | {len(line["refused"])} | {line["unread"]} |'
    )
    refused += [f'- {line["file"]}: `{text}`' for text in line['refused'][:20]]
  return '\n'.join([*table, '', *refused]).rstrip()


def _agreement(lines):
  table = [
    '| released grader | from | files | ours | responses | agree | differ for '
    'a reason | open |',
    '|---|---|---|---|---|---|---|---|',
  ]
  for line in lines:
    count, differences = line['responses'], line['differences']
    unexplained = sum(
      number
      for name, number in differences.items()
      if name.startswith(reasons.UNEXPLAINED)
    )
    explained = sum(differences.values()) - unexplained
    agree = 100 * (count - explained - unexplained) / max(count, 1)
    last = (
      '' if line['last_characters'] is None else f' {line["last_characters"]}'
    )
    table.append(
      f'| `{line["released"]}` | {line["of"]} | {", ".join(line["sources"])} | '
      f'`{line["extract"]}`{last}, `{line["verifier"]}` | {count} | '
      f'{agree:.2f}% | {explained} | {unexplained} '
      f'({100 * unexplained / max(count, 1):.2f}%) |'
    )
  return '\n'.join(table)


def _differences(lines):
  table = ['| released grader | reason | responses |', '|---|---|---|']
  for line in lines:
    for reason, count in line['differences'].items():
      table.append(f'| `{line["released"]}` | {reason} | {count} |')
  return '\n'.join(table)


def _list(title, items):
  lines = ''.join(f'- {item}\n' for item in items)
  return f'**{title}.**\n\n{lines}' if lines else ''


def _prompt(text, source, licence):
  return f'`{text!r}`: {source}; licence: {licence}'


def _commands(name, recipe):
  fetch = f'python -m experiments.data --paper={name} --weights'
  if not recipe.rows:
    return '\n'.join(['```sh', fetch, *recipe.measured.values(), '```'])
  row = next(iter(recipe.rows))
  plans = [
    f'python -m experiments.plan --paper={name} --row={row} --target={pod}'
    for pod in recipe.pods
  ]
  table = f'python -m experiments.table --paper={name}'
  lines = [
    f'python -m experiments.sweep --paper={name} --scale=tiny '
    f'--workdir=runs/{name}_tiny',
    f'{table} --scale=tiny --workdir=runs/{name}_tiny',
    fetch,
    *plans,
    published.command(name, row),
    f'{table} --scale=paper --workdir=runs/{name}',
  ]
  steps = [
    'The recipe in miniature, on any machine; data and weights; what a pod',
    'needs, which compiles for minutes (`--nocompile` does not); a row; the',
    'table.',
  ]
  parts = ['\n'.join(steps), '\n'.join(['```sh', *lines, '```'])]
  if recipe.evaluation or recipe.played:
    released = (
      'DIR has the weights of a released model or of a run: it is measured as '
      'the table says, and nothing is trained.'
    )
    measure = f'python -m experiments.evaluate --paper={name} --checkpoint=DIR'
    parts += [released, f'```sh\n{measure}\n```']
  return '\n\n'.join(parts)


def _small(name, recipe):
  """Rows for one machine, which no published number is beside."""
  if not recipe.small:
    return ''
  lines = [f'- `{row}`: {one.note}' for row, one in recipe.small.items()]
  command = (
    f'python -m experiments.sweep --paper={name} --scale=small '
    f'--workdir=runs/{name}_small'
  )
  return '\n'.join(
    [
      '## On one machine',
      '',
      'No published number is beside these rows. The command continues a run',
      'that was stopped, bit for bit.',
      '',
      *lines,
      '',
      f'```sh\n{command}\n```',
    ]
  )


GB = 1e9


def _plan(lines):
  """Memory, hours and the smallest slice, of rows with the same shapes once."""
  by_shapes = {}
  for line in lines:
    key = (line['target'], line.get('shapes', line['row']))
    by_shapes.setdefault(key, []).append(line)
  table = [
    'Memory of a device in GB: by arithmetic (`plan`), and what the compiler',
    'of the target says of the programs that were compiled. Hours are those of',
    'the roofline to the last rollout with evaluations, where every response',
    'has full length: no run is faster, unless responses are shorter. The',
    'smallest slice is that on which the plan fits into 90% of the memory,',
    'with settings that change no number.',
    '',
    '| rows | target | plan / limit | compiler: update, generate | hours | '
    'device hours | smallest slice |',
    '|---|---|---|---|---|---|---|',
  ]
  for (target, _), alike in by_shapes.items():
    rows = ', '.join(f'`{line["row"]}`' for line in alike)
    table.append(f'| {rows} | {target} | {_numbers(alike)} |')
  versions = {
    f'{x["compiled"]["compiler"]} at {x["compiled"]["commit"]}'
    for x in lines
    if 'compiled' in x
  }
  by = '; '.join(sorted(versions))
  table += ['', f'Compilers: {by}.' if by else 'Nothing was compiled.']
  return '\n'.join(table)


def _numbers(alike):
  """The columns of a plan after rows and target."""
  line = alike[0]
  if 'error' in line:
    return f'{line["error"]} | - | - | - | {_slice(line)}'
  found = [x['compiled']['programs'] for x in alike if 'compiled' in x]
  compiled = '-'
  if found:
    kinds = ('update', 'generate')
    compiled = ', '.join(
      f'{found[0][kind]["memory"] / GB:.1f}' if kind in found[0] else '-'
      for kind in kinds
    )
  hours, count = line['hours'], line['devices']
  return (
    f'{line["needed"] / GB:.1f} / {line["limit"] / GB:.0f} | {compiled} | '
    f'{hours:.1f} | {_rounded(hours * count)} | {_slice(line)}'
  )


def _rounded(hours):
  return f'{hours:.0f}' if hours >= 10 else f'{hours:.1f}'


def _slice(line):
  found = line['smallest']
  if found is None:
    return 'none found'
  sets = [text for text in found['set'] if not text.endswith('=None')]
  return f'{found["devices"]}: `--set={" --set=".join(sets)}`'


def _data(recipe):
  if not recipe.sources:
    return 'No files of rows: the recipe plays games.'
  lines = [
    '| file | from | rows | SHA-256 | licence |',
    '|---|---|---|---|---|',
  ]
  for source in recipe.sources:
    where = f'{source.repository} @ {source.revision[:12]}, `{source.path}`'
    lines.append(
      f'| `{data_files.places(source).rows}` | {where} | '
      f'{source.rows or "not known"} | {source.sha256[:12] or "not known"} | '
      f'{source.licence or "not stated"} |'
    )
  return '\n'.join(lines)


def write() -> None:
  """Writes all pages, and removes those of recipes that are gone."""
  OUT.mkdir(exist_ok=True)
  found = pages()
  for path in OUT.glob('*.md'):
    if path.stem not in found:
      path.unlink()
  for name, text in found.items():
    (OUT / f'{name}.md').write_text(text, encoding='utf-8')


if __name__ == '__main__':
  write()
