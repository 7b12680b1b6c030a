"""Recipes: each says what a published table takes to be made again.

experiments/papers/NAME/recipe.py holds RECIPE and get_config(method); it is
found by the name of its folder. A recipe holds facts. What was read in a
released file or in the paper's table is a plain field; what was transcribed
from a figure is named in `transcribed`, and what nobody has read in
`unverified`.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import importlib
import re
from typing import Any

from experiments.flags import configuration
from rl_jax import overrides
from rl_jax.config import ExperimentConfig
from rl_jax.method import Method
from rl_jax.planning import targets
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import answers
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.evaluation_set import OPTION_ACCURACIES

FOLLOWS = ('released code', 'paper')
FORMS = ('.jsonl', '.json', '.csv', '.parquet', '.arrow')
_NAME = re.compile(r'[a-z0-9_]+')
_PLACE = re.compile(r'(hf|git):[\w.-]+/[\w.-]+')


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSource:
  """A published file of rows, and how it becomes rows of question and answer.

  name: of the files that `experiments.data` writes, data/recipes/NAME.jsonl.
  repository: 'hf:OWNER/NAME', a data set on the Hugging Face hub, or
    'git:OWNER/NAME', a repository on GitHub.
  path: of the file in the repository. revision: a commit or a branch.
  columns: fields that every row has; 'a.b' is the field b of a, 'a.0' the first
    value of the list a.
  rows: how many the file has; None: not known. unique: how many remain when
    questions that occur twice are removed; None: not known.
  sha256: of the file, or '': not known.
  question, answer: templates of fields, as of tasks.QuestionAnswer; a field
    that holds a list has several right answers, or is a conversation whose last
    turn is the question. question='': rows are only what they keep; answer='':
    they have no right answers.
  system: template of the message of the system in front of the question, or ''.
  keep: columns that rows have as they are, as those of preferences and those
    that rewards read.
  only: (column, value) of the rows that are of this source; None: all.
  repeats: whether questions that occur twice stay.
  prefix, suffix: texts around every question that are not part of it.
  gold: where the right answer is in the answer field, a mode of
    `answers.extract`.
  unreadable: rows without a readable right answer, which are left out.
  licence: of the data, or '': the repository states none.

  Raises: ValueError naming a field that has another form.
  """

  name: str
  repository: str
  path: str
  revision: str
  columns: tuple[str, ...]
  rows: int | None = None
  unique: int | None = None
  sha256: str = ''
  question: str = '{question}'
  answer: str = '{answer}'
  prefix: str = ''
  suffix: str = ''
  gold: str = 'whole'
  unreadable: int = 0
  licence: str = ''
  system: str = ''
  keep: tuple[str, ...] = ()
  repeats: bool = False
  only: tuple[str, str] | None = None

  def __post_init__(self):
    where = f'DataSource({self.name!r})'
    if not _NAME.fullmatch(self.name):
      raise ValueError(f'{where}.name: expected letters a-z, digits and _')
    if not _PLACE.fullmatch(self.repository):
      raise ValueError(
        f'{where}.repository = {self.repository!r}: expected hf:OWNER/NAME or '
        'git:OWNER/NAME'
      )
    if not self.path.endswith(FORMS):
      raise ValueError(
        f'{where}.path = {self.path!r}: expected a file that ends with one of '
        f'{FORMS}'
      )
    if not self.revision:
      raise ValueError(f'{where}.revision is empty: give a commit or a branch')
    if self.gold not in answers.MODES:
      raise ValueError(
        f'{where}.gold = {self.gold!r}: expected one of {answers.MODES}'
      )
    if self.sha256 and not re.fullmatch(r'[0-9a-f]{64}', self.sha256):
      raise ValueError(f'{where}.sha256 = {self.sha256!r}: expected 64 digits')
    if not (self.question or self.keep):
      raise ValueError(
        f'{where}: question and keep are empty: rows have nothing'
      )
    read = (
      *rows_lib.fields_of(self.question, self.answer, self.system),
      *self.keep,
      *(self.only[:1] if self.only else ()),
    )
    if lost := [name for name in read if name not in self.columns]:
      raise ValueError(
        f'{where}.columns = {self.columns} lacks {lost}, which question, '
        'answer, system, keep or only name'
      )
    for field in ('rows', 'unique'):
      value = dataclasses.asdict(self)[field]
      if value is not None and value < 1:
        raise ValueError(f'{where}.{field} = {value}: expected at least 1')

  @property
  def file(self) -> str:
    """Returns where the rows are after `experiments.data`."""
    return f'{FOLDER}/{self.name}.jsonl'

  @property
  def num_rows(self) -> int | None:
    """Rows after `experiments.data`, if their number is known."""
    return self.unique or self.rows


FOLDER = 'data/recipes'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Benchmark:
  """A set of problems with the decoding that the paper's table has for it.

  samples: responses to a prompt of which the mean accuracy counts; 0: one
  greedy response. max_tokens: of a response; None: as in training. changes: of
  the fields of the task of questions, as another verifier. user: the user's
  message around {question} where it is not that of training. about: how many
  rows plans count where nobody has counted those of the file. options: the
  accuracy of the table where options are compared by log-likelihood, as 'acc'
  or 'acc_per_character'; changes are then fields of tasks.ChoiceRows.
  """

  data: DataSource
  samples: int = 0
  temperature: float = 1.0
  top_p: float = 1.0
  max_tokens: int | None = None
  changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  user: str = ''
  about: int | None = None
  options: str = ''

  def __post_init__(self):
    where = f'Benchmark({self.data.name!r})'
    if self.options and self.options not in OPTION_ACCURACIES:
      raise ValueError(
        f'{where}.options = {self.options!r}: expected one of '
        f'{OPTION_ACCURACIES}'
      )
    if self.options and self.samples:
      raise ValueError(
        f'{where}.options = {self.options!r} with samples = {self.samples}: '
        'nothing is sampled where options are compared'
      )
    if self.about is not None and self.about < 1:
      raise ValueError(f'{where}.about = {self.about}: expected at least 1')
    if self.samples < 0:
      raise ValueError(f'{where}.samples = {self.samples}: expected 0 or more')
    if self.samples and not self.temperature > 0:
      raise ValueError(
        f'{where}.temperature = {self.temperature} with samples: expected more '
        'than 0'
      )
    if not 0 < self.top_p <= 1:
      raise ValueError(f'{where}.top_p = {self.top_p}: expected 0 < p <= 1')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByHand:
  """A row with the columns of a source, written for this package.

  right, wrong: responses whose outcome is 1 and 0.
  """

  row: Mapping[str, Any]
  right: str = ''
  wrong: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
  """A row of the table: a method, and what it changes of the configuration.

  method: as --method. variant: of the recipe's get_config, as --config
  papers/NAME@VARIANT. add, set: as --add and --set. tiny: further changes of
  the run in miniature. pods: accelerators to plan for, if not the recipe's.
  note: what to know of it.
  """

  method: str
  variant: str = ''
  add: tuple[str, ...] = ()
  set: tuple[str, ...] = ()
  tiny: tuple[str, ...] = ()
  pods: tuple[str, ...] = ()
  note: str = ''

  def __post_init__(self):
    texts_of = {'add': self.add, 'set': self.set, 'tiny': self.tiny}
    for field, texts in texts_of.items():
      for text in texts:
        if '=' not in text:
          raise ValueError(f'Row.{field}: {text!r} is not PATH=VALUE')
    for pod in self.pods:
      targets.Target.parse(pod)

  def words(self, paper: str) -> tuple[str, str, list[str], list[str]]:
    """(config, method, sets, adds), as on the command line of train."""
    config = f'papers/{paper}' + f'@{self.variant}' * bool(self.variant)
    return config, self.method, list(self.set), list(self.add)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
  """Everything that a stranger with a pod needs to make a table again.

  paper: its identifier; table: which one; source: repository @ commit, files.
  models: those that rows train, by their names on the Hugging Face hub.
  data: what rows train on; none: games. by_hand: name of a source -> its rows
    in miniature; of others they are the problems of `tiny`.
  config: an ordinary configuration of a method; nothing in it that --set cannot
    reach.
  evaluated: the configuration of a row -> that of its evaluation, where
    training cannot measure the table, as of a game; None: the same.
  rows: those that this package trains, by name. measured: released models that
    are measured only, by name, each with its command; the table of such a row
    is what the command prints. small: rows of no table, the schedule of one
    that is with another model and other data, for one machine; their names are
    those of no other row. left_out: further rows of the table, with the reason.
  columns: of the table, in its order. evaluation: column -> benchmark, none
    where nothing of the table can be measured here; missing: column -> why;
    average: the column that the paper calls the average, or '', of the columns
    `averaged`, or of all others.
  played: column -> samples of a prompt, of columns that a set of the
    configuration with its name measures by episodes; 0: greedy.
  published: (row, column) -> number as printed, in the paper's own units; rows
    that are in no other field are references, as the model before training.
  unpublished: why there are no numbers, if there are none.
  protocol: the paper's decoding, in words. prompts: (text, source, licence) of
    each text that the configuration has from a released file.
  follows: the released code or the paper, where they differ; how, in `traps`.
  stop: when training ended, and how this recipe fixes it.
  hardware, hours: as the authors state them, or '' where they do not.
  pods: accelerators to plan for, as --target.
  chat: texts that the prompt of a question, here {question}, has in this order
    after the chat template; (): not known, and any template is accepted.

  Raises: ValueError naming a field that does not fit the others.
  """

  title: str
  paper: str
  table: str
  source: str
  models: tuple[str, ...]
  data: tuple[DataSource, ...]
  columns: tuple[str, ...]
  evaluation: Mapping[str, Benchmark]
  published: Mapping[tuple[str, str], float]
  protocol: str
  follows: str
  stop: str
  config: Callable[[Method], ExperimentConfig] | None = None
  evaluated: Callable[[ExperimentConfig], ExperimentConfig] | None = None
  rows: Mapping[str, Row] = dataclasses.field(default_factory=dict)
  measured: Mapping[str, str] = dataclasses.field(default_factory=dict)
  small: Mapping[str, Row] = dataclasses.field(default_factory=dict)
  average: str = ''
  averaged: tuple[str, ...] = ()
  missing: Mapping[str, str] = dataclasses.field(default_factory=dict)
  played: Mapping[str, int] = dataclasses.field(default_factory=dict)
  unpublished: str = ''
  left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
  prompts: tuple[tuple[str, str, str], ...] = ()
  hardware: str = ''
  hours: str = ''
  transcribed: tuple[str, ...] = ()
  unverified: tuple[str, ...] = ()
  weaker: tuple[str, ...] = ()
  traps: tuple[str, ...] = ()
  pods: tuple[str, ...] = ()
  by_hand: Mapping[str, tuple[ByHand, ...]] = dataclasses.field(
    default_factory=dict
  )
  chat: tuple[str, ...] = ()

  def __post_init__(self):
    if self.follows not in FOLLOWS:
      raise ValueError(
        f'Recipe.follows = {self.follows!r}: expected one of {FOLLOWS}'
      )
    if not self.models:
      raise ValueError('Recipe.models is empty')
    if bool(self.published) == bool(self.unpublished):
      raise ValueError(
        'Recipe.published is empty: say why in unpublished'
        if self.unpublished == ''
        else 'Recipe.unpublished is of a recipe without published numbers'
      )
    if not (self.rows or self.measured):
      raise ValueError('Recipe.rows is empty, and so is measured')
    if bool(self.rows) != bool(self.config):
      raise ValueError('Recipe.config is of rows: give both or neither')
    held = {
      *self.evaluation,
      *self.missing,
      *self.played,
      *((self.average,) * bool(self.average)),
    }
    if held != {*self.columns}:
      raise ValueError(
        f'Recipe.columns = {self.columns}, but evaluation, missing, played and '
        f'average have {sorted(held)}'
      )
    for row, column in self.published:
      if column not in held:
        raise ValueError(
          f'Recipe.published of {row!r}: '
          + overrides.unknown_name('column', column, held)
        )
    sources: dict[str, DataSource] = {}
    read = [one.data for one in self.evaluation.values()]
    for source in (*self.data, *read):
      if sources.setdefault(source.name, source) != source:
        raise ValueError(f'Recipe: two data sources are named {source.name!r}')
    if lost := [*self.by_hand.keys() - sources.keys()]:
      raise ValueError(f'Recipe.by_hand has {lost}, but no such sources')
    if both := set(self.rows) & set(self.left_out):
      raise ValueError(f'Recipe.left_out has rows that are trained: {both}')
    if both := set(self.small) & {*self.rows, *self.left_out}:
      raise ValueError(f'Recipe.small has rows of the table: {both}')
    for pod in self.pods:
      targets.Target.parse(pod)

  @property
  def sources(self) -> tuple[DataSource, ...]:
    """The files that training and evaluation read, each once."""
    read = (*self.data, *self.benchmarks)
    return tuple({one.name: one for one in read}.values())

  @property
  def benchmarks(self) -> tuple[DataSource, ...]:
    """The files that evaluation reads, each once."""
    read = [one.data for one in self.evaluation.values()]
    return tuple({one.name: one for one in read}.values())

  def samples(self, column: str) -> int:
    """Samples of a prompt of which a column is the mean; 0: greedy."""
    if column in self.played:
      return self.played[column]
    return self.evaluation[column].samples

  @property
  def table_rows(self) -> tuple[str, ...]:
    """Names of rows in the published order, then those without a number."""
    printed = dict.fromkeys(row for row, _ in self.published)
    more = (*self.rows, *self.measured, *self.left_out)
    return tuple(printed | dict.fromkeys(more))


def names() -> list[str]:
  """Names of the papers that have a recipe, sorted."""
  folder = configuration.ROOT / 'experiments' / 'papers'
  return sorted(path.parent.name for path in folder.glob('*/recipe.py'))


@functools.cache
def load(paper: str) -> Recipe:
  """The recipe of a paper.

  Raises: ValueError naming the known papers.
  """
  known = names()
  if paper not in known:
    raise ValueError(overrides.unknown_name('recipe', paper, known))
  module = importlib.import_module(f'experiments.papers.{paper}.recipe')
  return module.RECIPE


def row_of(paper: str, row: str) -> Row:
  """A row of a recipe by name.

  Raises: ValueError naming the known rows, or why a row is left out.
  """
  recipe = load(paper)
  if row in recipe.left_out:
    raise ValueError(
      f'row {row!r} of {paper} is left out: {recipe.left_out[row]}'
    )
  if row not in recipe.rows:
    raise ValueError(
      overrides.unknown_name(f'row of {paper}', row, recipe.rows)
    )
  return recipe.rows[row]


def small_row(paper: str, row: str) -> Row:
  """A row of a recipe for one machine.

  Raises: ValueError naming the known rows, or the recipes that have some.
  """
  small = load(paper).small
  if not small:
    having = [name for name in names() if load(name).small]
    raise ValueError(
      f'{paper} has no rows at the small scale; these have: {", ".join(having)}'
    )
  if row not in small:
    what = f'row of {paper} at the small scale'
    raise ValueError(overrides.unknown_name(what, row, small))
  return small[row]


def first_row(paper: str) -> str:
  """The name of the first row.

  Raises: ValueError if the recipe trains nothing, with what it measures.
  """
  recipe = load(paper)
  if not recipe.rows:
    commands = '; '.join(recipe.measured.values())
    raise ValueError(f'{paper} trains nothing, but measures: {commands}')
  return next(iter(recipe.rows))


def experiment(paper: str, row: str) -> ExperimentConfig:
  """The whole configuration of a row, at the scale of the paper."""
  return configuration.build(*row_of(paper, row).words(paper))


def protocol(paper: str, row: str = '') -> ExperimentConfig:
  """The evaluation of a row, of the first by default, on all devices."""
  config = experiment(paper, row or first_row(paper))
  if change := load(paper).evaluated:
    config = change(config)
  return dataclasses.replace(config, mesh=MeshConfig())
