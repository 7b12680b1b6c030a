"""Pages of recipes: published numbers, commands, cost, traps, what is open.

  python docs/reproductions.py

writes docs/reproductions/, which is committed; a test says when it is stale.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments.papers import data_files  # noqa: E402
from experiments.papers import recipe as recipe_lib  # noqa: E402
from experiments.tables import cells, published  # noqa: E402

OUT = pathlib.Path(__file__).parent / 'reproductions'
NOTHING = 'Run on an accelerator: nothing yet.'


def pages() -> dict[str, str]:
  """Name of a page -> its text."""
  found = {name: page(name) for name in recipe_lib.names()}
  return found | {'index': index(list(found))}


def index(names: list[str]) -> str:
  """All recipes, with what they cost as stated."""
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
    '| recipe | rows | hardware as stated | hours as stated |',
    '|---|---|---|---|',
  ]
  for name in names:
    recipe = recipe_lib.load(name)
    rows = ', '.join(f'`{row}`' for row in (*recipe.rows, *recipe.measured))
    lines.append(
      f'| [{recipe.title}]({name}.md) | {rows} | {recipe.hardware or "-"} | '
      f'{recipe.hours or "not stated"} |'
    )
  toc = '\n'.join(names)
  lines += ['', f'```{{toctree}}\n:hidden:\n\n{toc}\n```']
  return '\n'.join(lines) + '\n'


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
    '## Table',
    cells.render(published.cells(name, runs), 'markdown'),
    _list('Left out', [f'`{x}`: {why}' for x, why in recipe.left_out.items()]),
    _list('Not measured', [f'`{x}`: {y}' for x, y in recipe.missing.items()]),
    f'**Protocol.** {recipe.protocol}.',
    f'**End of training.** {recipe.stop}.',
    f'**Hardware as stated.** {recipe.hardware or "not stated"}. **Hours as '
    f'stated.** {recipe.hours or "not stated"}.',
    '## Commands',
    _commands(name, recipe),
    '## Data',
    _data(recipe),
    _list('Prompts', [_prompt(*one) for one in recipe.prompts]),
    _list('Traps', recipe.traps),
    _list('Transcribed, not read as text', recipe.transcribed),
    _list('Unverified', recipe.unverified),
    _list('Weaker than the original', recipe.weaker),
  ]
  return '\n\n'.join(part.rstrip() for part in parts if part) + '\n'


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
  lines = [
    fetch,
    *plans,
    published.command(name, row),
    f'python -m experiments.evaluate --paper={name} --checkpoint=DIR',
    f'python -m experiments.sweep --paper={name} --scale=tiny '
    f'--workdir=runs/{name}_tiny',
  ]
  return '\n'.join(['```sh', *lines, '```'])


def _data(recipe):
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
