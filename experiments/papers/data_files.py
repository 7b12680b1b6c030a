"""Data of recipes: fetched by revision, checked, converted, with a manifest.

Of a DataSource with the name N the folder data/recipes holds raw/N.EXT, the
file as published; N.jsonl, rows with question (a text, or a conversation),
answer (a text, or a list of right ones), kept columns and id; and N.json, the
manifest, which is written last. A file is
there as a whole or not at all: it is written beside its place and then moved.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any
import uuid

from experiments.papers.recipe import FOLDER, DataSource, Recipe
from rl_jax.tasks import answers
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.sources import BadRowError

_MAX_ROW_BYTES = 10_000_000
_POINTER = b'version https://git-lfs'
_BESIDE = '.part'  # files that are being written
# Of fields that a manifest of an earlier version may lack.
_DEFAULTS = {
  field.name: field.default
  for field in dataclasses.fields(DataSource)
  if field.default is not dataclasses.MISSING
}


@dataclasses.dataclass(frozen=True)
class Places:
  """The places of the files of a source, below a folder."""

  raw: str
  rows: str
  manifest: str


def places(source: DataSource, folder: str = FOLDER) -> Places:
  """The files of a source."""
  ending = pathlib.PurePosixPath(source.path).suffix
  return Places(
    raw=os.path.join(folder, 'raw', source.name + ending),
    rows=os.path.join(folder, f'{source.name}.jsonl'),
    manifest=os.path.join(folder, f'{source.name}.json'),
  )


def prepare(source: DataSource, folder: str = FOLDER) -> dict[str, Any]:
  """The manifest of a source, whose rows are there afterwards.

  What is there already and has the recorded hash is left as it is; a file at
  `places(source).raw` is used instead of being fetched.

  Raises: ValueError for a file with another hash, columns or number of rows
    than the recipe says; FileNotFoundError, saying which file to put where, if
    it cannot be fetched.
  """
  where = places(source, folder)
  known = read_manifest(source, folder)
  if known is not None:
    return known
  revision = source.revision
  if not os.path.exists(where.raw):
    revision = fetch(source, where.raw)
  digest = sha256(where.raw)
  if source.sha256 and digest != source.sha256:
    raise ValueError(
      f'{where.raw} has the SHA-256 {digest}, expected {source.sha256}: it is '
      f'not {source.path} of {source.repository} at {source.revision}; '
      'remove it to fetch it again'
    )
  counts = _convert(source, where)
  manifest = {
    'source': dataclasses.asdict(source),
    'revision': revision,
    'raw': digest,
    'rows': sha256(where.rows),
    **counts,
  }
  text = json.dumps(manifest, indent=1, sort_keys=True) + '\n'
  with replaced(where.manifest) as file:
    file.write(text.encode())
  return read_manifest(source, folder) or manifest


def read_manifest(
  source: DataSource, folder: str = FOLDER
) -> dict[str, Any] | None:
  """Returns what `prepare` wrote, or None if it has to be written (again)."""
  where = places(source, folder)
  try:
    with open(where.manifest, encoding='utf-8') as file:
      found = json.load(file)
    described = json.loads(json.dumps(dataclasses.asdict(source)))
    written = json.loads(json.dumps(_DEFAULTS)) | found['source']
    if written == described and found['rows'] == sha256(where.rows):
      return found
  except (OSError, ValueError, KeyError, TypeError):
    pass
  return None


def check_all(recipe: Recipe, paper: str, trains: bool = True) -> None:
  """Raises FileNotFoundError naming the data of a recipe that is not there.

  trains: whether the data of training are needed, too.
  """
  for source in recipe.sources if trains else recipe.benchmarks:
    if read_manifest(source) is None:
      raise FileNotFoundError(
        f'{source.file} is missing, or not as its manifest '
        f'says: python -m experiments.data --paper={paper}'
      )


def _convert(source: DataSource, where: Places) -> dict[str, int]:
  """Writes the rows; returns what was counted."""
  seen: dict[bytes, None] = {}
  total = unreadable = written = 0
  with replaced(where.rows) as file:
    for place, record in _records(where.raw):
      if not _is_of(source, record, place):
        continue
      total += 1
      row = converted(source, record, place)
      if source.answer and source.question and 'answer' not in row:
        unreadable += 1
        continue
      text = json.dumps(row.get('question', row), ensure_ascii=False)
      key = hashlib.sha256(text.encode()).digest()
      if key in seen and not source.repeats:
        continue
      seen[key] = None
      written += 1
      row = {'id': written - 1, **row}
      file.write((json.dumps(row, ensure_ascii=False) + '\n').encode())
    _check_count(where.raw, 'rows', total, source.rows)
    _check_count(where.raw, 'different questions', len(seen), source.unique)
    _check_count(
      where.raw, 'rows without a right answer', unreadable, source.unreadable
    )
  return {'total': total, 'unique': len(seen), 'unreadable': unreadable}


def _is_of(source, record, where):
  """Returns whether a row is one of the source's."""
  if source.only is None:
    return True
  column, value = source.only
  return rows_lib.field(record, column, where) == value


def _check_count(path, what, found, expected):
  if expected is not None and found != expected:
    raise ValueError(f'{path} has {found} {what}, expected {expected}')


def _records(path) -> Iterator[tuple[str, Any]]:
  """(place, row) of a file as published."""
  for file, number, record in rows_lib.read_records(
    path, '', _MAX_ROW_BYTES, None
  ):
    if isinstance(record, BadRowError):
      raise record
    yield f'{file}{number}', record


def converted(source: DataSource, record: Any, where: str) -> dict[str, Any]:
  """The question, the right answers, if there are any, and kept columns.

  Raises: BadRowError for a missing column, or another text around a question.
  """
  for name in source.columns:
    rows_lib.lookup(record, name, where)
  row: dict[str, Any] = {}
  if source.question:
    row['question'] = _question(source, record, where)
    if found := _answers(source, record, where):
      row['answer'] = found if len(found) > 1 else found[0]
  kept = {name: rows_lib.lookup(record, name, where) for name in source.keep}
  return row | {name: _plain(value) for name, value in kept.items()}


def _question(source, record, where):
  """The text of a question, or the turns of a conversation."""
  turns = ()
  if name := rows_lib.only_field(source.question):
    turns, _ = rows_lib.conversation(record, name, where)
  if turns:
    *before, last = turns
    return [*before, {**last, 'content': _own(source, last['content'], where)}]
  text = _own(source, rows_lib.fill(source.question, record, where), where)
  if not source.system:
    return text
  system = rows_lib.fill(source.system, record, where)
  return [
    {'role': 'system', 'content': system},
    {'role': 'user', 'content': text},
  ]


def _own(source, text, where):
  """The text without what is around every question."""
  if not (text.startswith(source.prefix) and text.endswith(source.suffix)):
    raise BadRowError(
      where,
      'wrong_text',
      f'expected {source.prefix!r:.60} before the question and '
      f'{source.suffix!r:.60} after it, got {text!r:.200}',
    )
  return text.removeprefix(source.prefix).removesuffix(source.suffix).strip()


def _answers(source, record, where):
  """Right answers that can be read."""
  if not source.answer:
    return []
  name = rows_lib.only_field(source.answer)
  value = None if name is None else rows_lib.lookup(record, name, where)
  if isinstance(value, (list, tuple)):
    texts = [rows_lib.as_text(one, str(name), where) for one in value]
  else:
    texts = [rows_lib.fill(source.answer, record, where)]
  found = [answers.extract(text, source.gold) for text in texts]
  return [text for text in found if text is not None]


def _plain(value):
  """The value in types of JSON; tables have arrays and their scalars."""
  return json.loads(json.dumps(value, default=lambda x: x.tolist()))


def sha256(path: str) -> str:
  """The digest of the content of a file."""
  digest = hashlib.sha256()
  with open(path, 'rb') as file:
    while block := file.read(1 << 20):
      digest.update(block)
  return digest.hexdigest()


@contextlib.contextmanager
def replaced(path: str) -> Iterator[Any]:
  """A file that takes the place of `path` if nothing is raised.

  What a process that was killed has left beside the place is removed.
  """
  folder, name = os.path.dirname(path) or '.', os.path.basename(path)
  os.makedirs(folder, exist_ok=True)
  for left in pathlib.Path(folder).glob(f'.{glob.escape(name)}.*{_BESIDE}'):
    _remove_unless_written(left)
  beside = os.path.join(folder, f'.{name}.{uuid.uuid4().hex}{_BESIDE}')
  try:
    with open(beside, 'xb') as file:
      with contextlib.suppress(OSError):  # some file systems have no locks
        fcntl.flock(file, fcntl.LOCK_EX)
      yield file
      file.flush()
      os.fsync(file.fileno())
      os.replace(beside, path)
  except BaseException:
    pathlib.Path(beside).unlink(missing_ok=True)
    raise


def _remove_unless_written(path):
  """Removes a file that no living process has locked."""
  with contextlib.suppress(OSError), open(path, 'rb') as file:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    path.unlink()


def fetch(source: DataSource, path: str) -> str:
  """Writes the published file to a path; returns the commit it is of.

  Raises: FileNotFoundError saying what to put where.
  """
  kind, _, name = source.repository.partition(':')
  try:
    get = _from_hub if kind == 'hf' else _from_git
    return get(name, source, path)
  except (OSError, ImportError, subprocess.SubprocessError) as error:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    raise FileNotFoundError(
      f'{source.path} of {source.repository} at {source.revision} cannot be '
      f'fetched ({reason[-1]}): put the file to {os.path.abspath(path)} and '
      'run this command again'
    ) from error


def _from_hub(name, source, path):
  try:
    import huggingface_hub as hub
  except ImportError as error:
    raise ImportError(
      'the package huggingface_hub is not installed: pip install "rl_jax[hub]"'
    ) from error
  cached = hub.hf_hub_download(
    name, source.path, repo_type='dataset', revision=source.revision
  )
  with open(cached, 'rb') as found, replaced(path) as file:
    while block := found.read(1 << 20):
      file.write(block)
  # .../snapshots/COMMIT/PATH
  parts = pathlib.Path(cached).parts
  return parts[parts.index('snapshots') + 1]


def _from_git(name, source, path):
  """One file of one commit, without a work tree."""
  with tempfile.TemporaryDirectory() as clone:
    url = f'https://github.com/{name}'
    # Files are fetched when they are shown, and no others.
    _git('clone', '--quiet', '--bare', '--filter=blob:none', url, clone)
    commit = _git('-C', clone, 'rev-parse', source.revision).decode().strip()
    content = _git('-C', clone, 'show', f'{commit}:{source.path}')
  if content.startswith(_POINTER):
    raise OSError('the repository holds a pointer of Git LFS instead')
  with replaced(path) as file:
    file.write(content)
  return commit


def _git(*words):
  done = subprocess.run(
    ['git', *words],
    capture_output=True,
    env={**os.environ, 'GIT_TERMINAL_PROMPT': '0'},
  )
  if done.returncode:
    raise OSError(done.stderr.decode(errors='replace'))
  return done.stdout
