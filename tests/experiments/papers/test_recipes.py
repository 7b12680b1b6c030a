"""Recipes: what they hold fits, and its files are checked."""

import dataclasses
import fcntl
import json
import os
import pathlib
import subprocess
import sys

import pytest

from experiments import data
from experiments.papers import data_files, settings, tiny
from experiments.papers import recipe as recipe_lib
from experiments.papers.recipe import Benchmark, DataSource, Row
from experiments.sweeps import recipes
from experiments.sweeps import runs as sweep_runs
from experiments.tables import published
from rl_jax import config as config_lib
from rl_jax.tasks import Mixture, base
from rl_jax.tasks.environments.base import is_environment
from rl_jax.tasks.sources import BadRowError

NAMES = recipe_lib.names()
ROWS = [(paper, row) for paper in NAMES for row in recipe_lib.load(paper).rows]
# Those whose rows are questions with answers.
ASKED = [
  name
  for name in NAMES
  if any(one.answer for one in recipe_lib.load(name).data)
]
SOURCE = DataSource(
  name='sums',
  repository='git:someone/sums',
  revision='main',
  path='rows.jsonl',
  columns=('q.text', 'answer'),
  rows=3,
  unique=2,
  question='{q.text}',
  answer='{answer}',
  suffix=' Think.',
)
LINES = [
  {'q': {'text': '1+1? Think.'}, 'answer': '2'},
  {'q': {'text': '1+2? Think.'}, 'answer': ['3', '3.0']},
  {'q': {'text': '1+1? Think.'}, 'answer': '2'},
]


def put(folder, source=SOURCE, lines=LINES):
  """The file as published, where a user would put it."""
  path = pathlib.Path(data_files.places(source, str(folder)).raw)
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
  return path


def files_of(folder):
  return sorted(str(p.relative_to(folder)) for p in folder.rglob('*.*'))


@pytest.mark.parametrize(('paper', 'row'), ROWS)
def test_every_row_is_a_configuration(paper, row):
  """It fits, has the model's sizes, and trains on a file of the recipe."""
  recipe, config = recipe_lib.load(paper), recipe_lib.experiment(paper, row)
  config_lib.validate(config)
  read = [own for _, own in settings.all_rows(config.task)]
  assert bool(read) == bool(recipe.data)
  assert {tiny.source_of(recipe, own) for own in read} <= {
    one.name for one in recipe.data
  }
  model = next(
    name
    for name in recipe.models
    if settings.model_path(name) == config.model.path
  )
  assert config.model.config == settings.sizes(model)
  measured = recipe_lib.protocol(paper, row)
  config_lib.validate(measured)
  sets = [one.name for one in measured.evaluation.sets]
  assert sets == [*recipe.evaluation, *recipe.played]


def test_one_name_of_data_is_one_file():
  """Recipes share a folder."""
  found = {}
  for name in NAMES:
    for source in recipe_lib.load(name).sources:
      assert found.setdefault(source.name, source) == source


@pytest.mark.parametrize('name', NAMES)
def test_recipes_say_what_they_do_not_know(name):
  """Every printed row is trained, left out with a reason, or a reference."""
  recipe = recipe_lib.load(name)
  for row in recipe.table_rows:
    known = row in {**recipe.rows, **recipe.left_out, **recipe.measured}
    assert known or row.startswith(('model', 'r1_zero')), row
  assert recipe.traps and recipe.weaker and recipe.prompts
  assert recipe.pods or not recipe.rows
  for source in recipe.data:
    pinned = source.rows is not None and source.sha256
    assert pinned or recipe.unverified, source.name


@pytest.mark.parametrize(
  ('field', 'value', 'message'),
  [
    ('name', 'A b', r'name: expected letters'),
    (
      'repository',
      'someone/sums',
      r"repository = 'someone/sums': expected hf:",
    ),
    ('path', 'rows.xlsx', r"path = 'rows.xlsx': expected a file that ends"),
    ('revision', '', r'revision is empty'),
    ('columns', ('answer',), r"lacks \['q.text'\]"),
    ('gold', 'box', r"gold = 'box': expected one of"),
    ('rows', 0, r'rows = 0: expected at least 1'),
    ('sha256', 'abc', r"sha256 = 'abc': expected 64 digits"),
  ],
)
def test_a_source_that_cannot_be(field, value, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(SOURCE, **{field: value})


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'follows': 'blog'}, "follows = 'blog': expected one of"),
    ({'rows': {}, 'config': None}, 'Recipe.rows is empty, and so is measu'),
    ({'config': None}, 'Recipe.config is of rows'),
    ({'columns': ('gsm8k', 'x')}, 'Recipe.columns ='),
    ({'published': {('ppo', 'gsm'): 1.0}}, "Did you mean 'gsm8k'"),
    ({'left_out': {'ppo_0p5b': '-'}}, 'rows that are trained'),
    ({'pods': ('gpu:b900:1x1x1',)}, 'gpu:b900:1x1x1'),
    (
      {'data': (dataclasses.replace(SOURCE, name='verl_gsm8k_test'),)},
      "two data sources are named 'verl_gsm8k_test'",
    ),
  ],
)
def test_a_recipe_that_cannot_be(changes, message):
  recipe = recipe_lib.load('verl_baselines')
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(recipe, **changes)


def test_other_records_that_cannot_be():
  with pytest.raises(ValueError, match="Row.set: 'iterations' is not PATH"):
    Row(method='grpo', set=('iterations',))
  with pytest.raises(ValueError, match='samples = -1: expected 0 or more'):
    Benchmark(data=SOURCE, samples=-1)
  with pytest.raises(ValueError, match='temperature = 0.0 with samples'):
    Benchmark(data=SOURCE, samples=2, temperature=0.0)
  with pytest.raises(ValueError, match='about = 0: expected at least 1'):
    Benchmark(data=SOURCE, about=0)
  with pytest.raises(ValueError, match='top_p = 0'):
    Benchmark(data=SOURCE, top_p=0.0)


def test_unknown_names_have_a_nearest():
  with pytest.raises(ValueError, match="Did you mean 'dr_grpo'"):
    recipe_lib.load('drgrpo')
  with pytest.raises(ValueError, match="Did you mean 'clip_cov'"):
    recipe_lib.row_of('entropy_mechanism', 'clipcov')
  with pytest.raises(ValueError, match="'ppo' of spo_segments is left out: "):
    recipe_lib.row_of('spo_segments', 'ppo')


def test_rows_are_converted_once(tmp_path, monkeypatch):
  """Two of three questions; the manifest; nothing is done again."""
  put(tmp_path)
  found = data_files.prepare(SOURCE, str(tmp_path))
  assert (found['total'], found['unique'], found['unreadable']) == (3, 2, 0)
  rows = (tmp_path / 'sums.jsonl').read_text().splitlines()
  assert [json.loads(row) for row in rows] == [
    {'id': 0, 'question': '1+1?', 'answer': '2'},
    {'id': 1, 'question': '1+2?', 'answer': ['3', '3.0']},
  ]
  assert files_of(tmp_path) == ['raw/sums.jsonl', 'sums.json', 'sums.jsonl']
  monkeypatch.setattr(data_files, '_convert', None)
  assert data_files.prepare(SOURCE, str(tmp_path)) == found


def test_torn_rows_are_written_again(tmp_path):
  """A manifest counts only with the rows that it is of."""
  put(tmp_path)
  data_files.prepare(SOURCE, str(tmp_path))
  whole = (tmp_path / 'sums.jsonl').read_bytes()
  (tmp_path / 'sums.jsonl').write_bytes(whole[:20])
  assert data_files.read_manifest(SOURCE, str(tmp_path)) is None
  data_files.prepare(SOURCE, str(tmp_path))
  assert (tmp_path / 'sums.jsonl').read_bytes() == whole


def test_what_a_killed_process_has_left_is_removed(tmp_path):
  """But not what another process writes; the mode is that of any file."""
  put(tmp_path)
  left = tmp_path / '.sums.jsonl.a.part'
  written = tmp_path / '.sums.json.b.part'
  left.write_text('{"id": 0')
  (tmp_path / 'plain').write_text('')
  with written.open('wb') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    data_files.prepare(SOURCE, str(tmp_path))
  assert written.exists() and not left.exists()
  modes = {(tmp_path / name).stat().st_mode for name in ('plain', 'sums.jsonl')}
  assert len(modes) == 1


def test_all_that_cannot_be_fetched_is_reported(tmp_path, monkeypatch):
  """Data and weights in one error; nothing is left."""

  def refuse(*words):
    raise OSError('could not resolve host')

  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(data_files, '_git', refuse)
  monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
  message = '\n'.join(data.prepare('verl_baselines', weights=True))
  recipe = recipe_lib.load('verl_baselines')
  for source in recipe.sources:
    assert (
      f'put the file to {tmp_path}/data/recipes/raw/{source.name}' in message
    )
  for model in recipe.models:
    place = f'{tmp_path}/{settings.model_path(model)}'
    assert f'{model} cannot be fetched' in message and place in message
  assert files_of(tmp_path) == []


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'rows': 4}, r'sums.jsonl has 3 rows, expected 4'),
    ({'unique': 3}, r'has 2 different questions, expected 3'),
    ({'columns': ('q.text', 'answer', 'level')}, r"field 'level' is missing"),
    ({'suffix': ' Go.'}, r"sums.jsonl:1: .*' Go.' after it, got '1\+1"),
    ({'sha256': 'a' * 64}, r'SHA-256 \w+, expected a{64}'),
    ({'gold': 'boxed'}, r'has 0 different questions, expected 2'),
    (
      {'gold': 'boxed', 'unique': None},
      r'has 3 rows without a right answer, expected 0',
    ),
  ],
)
def test_another_file_is_refused(changes, message, tmp_path):
  """File, expected and found are named; no rows and no manifest are left."""
  source = dataclasses.replace(SOURCE, **changes)
  put(tmp_path, source)
  with pytest.raises((ValueError, BadRowError), match=message):
    data_files.prepare(source, str(tmp_path))
  assert files_of(tmp_path) == ['raw/sums.jsonl']


@pytest.mark.parametrize('repository', ['git:someone/sums', 'hf:someone/sums'])
def test_without_a_network_the_error_says_what_to_put_where(
  repository, tmp_path, monkeypatch
):
  """Nothing is left; afterwards the same command works."""

  def refuse(*words):
    raise OSError('could not resolve host')

  monkeypatch.setattr(data_files, '_git', refuse)
  monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
  source = dataclasses.replace(SOURCE, repository=repository)
  with pytest.raises(FileNotFoundError) as caught:
    data_files.prepare(source, str(tmp_path))
  assert f'put the file to {tmp_path}/raw/sums.jsonl' in str(caught.value)
  assert files_of(tmp_path) == []
  put(tmp_path, source)
  assert data_files.prepare(source, str(tmp_path))['unique'] == 2


def test_a_file_of_a_repository(tmp_path, monkeypatch):
  """Git fetches one file of one commit; a pointer of LFS is refused."""
  made = tmp_path / 'made'
  made.mkdir()
  put(made)
  (made / 'rows.jsonl').write_bytes((made / 'raw' / 'sums.jsonl').read_bytes())
  (made / 'pointer.jsonl').write_text('version https://git-lfs.github.com/x')
  for words in (
    ('init', '-q', '-b', 'main'),
    ('add', '.'),
    ('-c', 'user.name=a', '-c', 'user.email=a', 'commit', '-qm', 'rows'),
  ):
    subprocess.run(['git', *words], cwd=made, check=True)
  run = data_files._git

  def local(*words):
    return run(*(str(made) if x.startswith('https:') else x for x in words))

  monkeypatch.setattr(data_files, '_git', local)
  found = data_files.prepare(SOURCE, str(tmp_path / 'data'))
  head = run('-C', str(made), 'rev-parse', 'HEAD').decode().strip()
  assert found['unique'] == 2 and found['revision'] == head
  pointer = dataclasses.replace(SOURCE, path='pointer.jsonl', name='pointer')
  with pytest.raises(FileNotFoundError, match='a pointer of Git LFS'):
    data_files.prepare(pointer, str(tmp_path / 'data'))


def test_the_paper_scale_needs_its_files(tmp_path, monkeypatch):
  """Before anything is compiled; the command that fetches them is named."""
  monkeypatch.chdir(tmp_path)
  runs = recipes.members('dr_grpo', 'paper', ['dr_grpo_7b'], 2, 'w')
  assert [run.config.seed for run in runs] == [0, 1]
  with pytest.raises(FileNotFoundError, match='experiments.data --paper=dr'):
    recipes.check_files('dr_grpo', runs)
  monkeypatch.setattr(data_files, 'read_manifest', lambda *_: {})
  with pytest.raises(FileNotFoundError, match='models/Qwen2.5-Math-7B is miss'):
    recipes.check_files('dr_grpo', runs)


@pytest.mark.parametrize(('paper', 'row'), ROWS)
def test_a_setting_names_its_row(paper, row):
  """Also where rows differ in one number only."""
  (run,) = recipes.members(paper, 'paper', [row], 1, 'w')
  assert recipes.row_name(paper, run.setting, 'paper') == row
  changed = {**run.setting, 'rollout.temperature': 0.1}
  assert recipes.row_name(paper, changed, 'paper') is None


def test_a_table_without_runs_says_so():
  """Nothing of ours is a number."""
  for name in NAMES:
    _, *rows = published.cells(name, [])
    ours = [row for row in rows if row[1] == 'ours']
    assert len(ours) == len(recipe_lib.load(name).rows)
    assert all({*row[2:-2]} == {published.NOT_RUN} for row in ours)


def test_a_column_of_options():
  """Its set samples nothing, and average and table read its accuracy."""
  recipe = recipe_lib.load('verl_baselines')
  one = Benchmark(
    data=SOURCE,
    options='acc_per_character',
    changes={'options': 'choices'},
  )
  train = recipe_lib.experiment('verl_baselines', 'ppo_0p5b').task
  config = settings.evaluation({'sky': one}, train, every=1)
  (found,) = config.by_name().values()
  assert found.options and not (found.greedy or found.num_samples)
  (task,) = [one.task for one in config.sets]
  assert task.template == train.template and task.options == 'choices'
  assert config.averages[0].metrics == ('sky/acc_per_character',)
  table = dataclasses.replace(
    recipe,
    columns=('sky',),
    evaluation={'sky': one},
    published={('ppo_0p5b', 'sky'): 50.0},
    average='',
    missing={},
  )
  name = 'evaluation/sky/acc_per_character'
  last = {name: 0.5, f'{name}_low': 0.4, f'{name}_high': 0.6}
  last['evaluation/sky/acc'] = 0.1
  assert published._value(table, 'sky', last) == (0.5, (0.4, 0.6))
  with pytest.raises(ValueError, match="options = 'accuracy': expected one"):
    Benchmark(data=SOURCE, options='accuracy')
  with pytest.raises(ValueError, match='options = .* with samples = 2'):
    Benchmark(data=SOURCE, options='acc', samples=2)


def small_in_miniature(folder):
  """The small row of verl's baselines on a model and problems by hand."""
  tiny.write_model(settings.sizes('Qwen/Qwen2.5-0.5B'), f'{folder}/model')
  lines = [
    json.dumps({'input': f'{question} {i}', 'target': float(answer)})
    for i in range(4)
    for question, answer in tiny.PROBLEMS
  ]
  (folder / 'rows.jsonl').write_text('\n'.join(lines) + '\n')
  (run,) = recipes.members('verl_baselines', 'small', [], 1, str(folder))
  changes = {
    'model.path': f'{folder}/model',
    'task.sources': repr({'train': f'{folder}/rows.jsonl'}),
    'task.num_test': 4,
    'iterations': 2,
    'rollout.max_prompt_tokens': 512,
    'rollout.num_prompts': 4,
    'update.minibatch_prompts': 2,
    'update.microbatch_prompts': 2,
    'evaluation.every': 2,
    'evaluation.num_prompts': 4,
  }
  return run, sweep_runs.Run({**run.setting, **changes})


@pytest.mark.usefixtures('no_mesh_left')
def test_the_small_scale_is_the_schedule_of_a_row(tmp_path):
  """Its method and number of updates are those of the row; it runs."""
  run, small = small_in_miniature(tmp_path)
  row = recipe_lib.experiment('verl_baselines', 'ppo_0p5b')
  config = run.config
  config_lib.validate(config)
  assert config.method == row.method
  for field in ('group_size', 'temperature'):
    assert getattr(config.rollout, field) == getattr(row.rollout, field)
  for one in (config, row):
    assert one.rollout.num_prompts == 4 * one.update.minibatch_prompts
  assert config.model.critic == row.model.critic == 'own'
  assert config.optimizer.critic_multiplier == 10.0
  sweep_runs.execute(small, str(tmp_path))
  (line,) = sweep_runs.results(str(tmp_path))
  assert 0.0 <= line['last']['evaluation/pass_at_1'] <= 1.0
  assert line['last']['evaluation/reward_errors'] == 0


def test_worked_examples_of_the_small_scale_are_right():
  """The grader reads them, and refuses another number."""
  (run,) = recipes.members('verl_baselines', 'small', [], 1, 'w')
  task = run.config.task
  shots = task.template.text.split('Answer: ')[1:]
  assert len(shots) == 2
  for shot in shots:
    response, *_ = shot.splitlines()
    sum_of, _, answer = response.partition(' = ')
    right = float(eval(sum_of))
    asked = base.Example(prompt='-', answer=str(right), id=0)
    assert task.reward(asked, f' {response}')['outcome'] == 1.0
    assert task.reward(asked, f' {answer}1')['outcome'] == 0.0


def test_a_recipe_without_a_small_scale():
  with pytest.raises(ValueError, match='dr_grpo has no rows at the small sca'):
    recipes.members('dr_grpo', 'small', [], 1, 'w')
  with pytest.raises(ValueError, match="Did you mean 'ppo_135m'"):
    recipes.members('verl_baselines', 'small', ['ppo_135'], 1, 'w')
  small = recipe_lib.load('verl_baselines').small
  with pytest.raises(ValueError, match='small has rows of the table'):
    dataclasses.replace(
      recipe_lib.load('verl_baselines'), small={'ppo_0p5b': small['ppo_135m']}
    )


def graded(recipe, folder):
  """(name of the source, what judges it, task of rows) of the first row."""
  where = tiny.write(recipe, str(folder))
  config = recipe_lib.experiment(
    next(x for x in NAMES if recipe_lib.load(x) is recipe),
    next(iter(recipe.rows)),
  )
  tasks = [config.task]
  if isinstance(config.task, Mixture):
    tasks = [part.task for part in config.task.parts]
  for task in tasks:
    _, own = settings.rows_of(task)
    source = tiny.source_of(recipe, own)
    task = settings.with_rows(task, sources={'train': where[source]})
    _, own = settings.rows_of(task)
    yield source, own if is_environment(task) else task, own


@pytest.mark.parametrize('name', ASKED)
def test_right_answers_of_the_rows_by_hand_are_right(name, tmp_path):
  """Prompt and grader of every recipe, on boxes, hashes and last numbers."""
  recipe = recipe_lib.load(name)
  for source, task, own in graded(recipe, tmp_path):
    if source not in recipe.by_hand:
      check_problems(task, own)
      continue
    for i, one in enumerate(recipe.by_hand[source]):
      example = task.example('train', i)
      assert task.reward(example, one.right)['outcome'] == 1.0
      assert task.reward(example, one.wrong)['outcome'] == 0.0


def check_problems(task, own):
  """The problems of `tiny` in the recipe's prompt, by its grader."""
  right = {
    'boxed': 'So \\boxed{%s}.',
    'boxed_or_last_number': 'So \\boxed{%s}.',
    'boxed_after_think': 'Hm \\boxed{1}.</think> So \\boxed{%s}.',
    'hash': 'So\n#### %s',
    'hash_number': 'So\n#### %s',
    'answer_line': 'So\nAnswer: %s',
    'answer_tags': '<think>So</think><answer>%s</answer>',
    'last_number': 'So it is %s.',
  }[own.extract]
  for i, (question, answer) in enumerate(tiny.PROBLEMS):
    example = task.example('train', i)
    assert question in example.prompt
    assert task.reward(example, right % answer)['outcome'] == 1.0
    assert task.reward(example, right % '999')['outcome'] == 0.0


def test_pages_are_fresh():
  """docs/reproductions holds what docs/reproductions.py writes."""
  docs = recipe_lib.configuration.ROOT / 'docs'
  sys.path.insert(0, str(docs))
  try:
    import reproductions
  finally:
    sys.path.remove(str(docs))
  pages = reproductions.pages()
  folder = docs / 'reproductions'
  assert {p.stem for p in folder.glob('*.md')} == {*pages}
  for name, text in pages.items():
    assert (folder / f'{name}.md').read_text() == text, name


def test_the_program_lists_recipes_and_names_what_is_missing(tmp_path):
  """Files that cannot be fetched are one error, after all were tried."""
  command = [sys.executable, '-m', 'experiments.data']
  environment = {**os.environ, 'PYTHONPATH': str(recipe_lib.configuration.ROOT)}
  listed = subprocess.run(
    command, cwd=tmp_path, env=environment, capture_output=True, text=True
  )
  assert [x.split()[0] for x in listed.stdout.splitlines()] == NAMES
  wrong = subprocess.run(
    [*command, 'dr_grp'],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
  )
  assert wrong.returncode == 2
  assert "unknown recipe: 'dr_grp'. Did you mean 'dr_grpo'" in wrong.stderr
  protocol = subprocess.run(
    [*command[:2], 'experiments.evaluate', '--paper=disco', '--checkpoint=x'],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
  )
  assert protocol.returncode == 2
  assert 'disco_aime24.jsonl is missing, or not as its mani' in protocol.stderr
