"""Bad input of recipes is an error before anything is compiled."""

import dataclasses
import json
import pathlib

import pytest

from experiments.papers import data_files, prompts, settings, tiny
from experiments.papers import recipe as recipe_lib
from experiments.sweeps import recipes
from experiments.sweeps import runs as sweep_runs

PAPER = 'dr_grpo'
ROW = 'dr_grpo_1p5b'
# Of an iteration; weights and the optimizer's state are placed by others.
PROGRAMS = {'generate', 'score', 'update', 'make_batch'}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """A tiny model of the recipe, and its rows by hand."""
  place = tmp_path_factory.mktemp('recipe')
  tiny.write(recipe_lib.load(PAPER), str(place))
  return place


@pytest.fixture
def model(folder, tmp_path):
  """A copy of the tokenizer, to be changed."""
  for path in (folder / 'model').glob('*.json'):
    (tmp_path / path.name).write_bytes(path.read_bytes())
  return tmp_path


def config_of(folder):
  """The row, on the rows by hand."""
  config = recipe_lib.experiment(PAPER, ROW)
  recipe = recipe_lib.load(PAPER)
  sets = tuple(
    dataclasses.replace(
      one,
      task=settings.with_rows(
        one.task,
        sources={
          'test': str(
            folder / 'data' / f'{recipe.evaluation[one.name].data.name}.jsonl'
          )
        },
      ),
    )
    for one in config.evaluation.sets
  )
  evaluation = dataclasses.replace(config.evaluation, sets=sets)
  return dataclasses.replace(config, evaluation=evaluation)


def changed_template(model, change):
  """The tokenizer's configuration with another chat template."""
  path = model / 'tokenizer_config.json'
  found = json.loads(path.read_text())
  found['chat_template'] = change(found['chat_template'])
  path.write_text(json.dumps(found))


def test_the_template_of_the_paper_is_accepted(folder):
  """Prompts in ChatML with the system message of the recipe."""
  config = config_of(folder)
  prompts.check(recipe_lib.load(PAPER), config, str(folder / 'model'))
  prompts.check_lengths(config, str(folder / 'model'))


def test_another_chat_template_is_named(folder, model):
  """File, expected and found."""
  changed_template(model, lambda text: text.replace('<|im_start|>', '[turn]'))
  with pytest.raises(ValueError) as caught:
    prompts.check(recipe_lib.load(PAPER), config_of(folder), str(model))
  message = str(caught.value)
  assert f'{model}/tokenizer_config.json: the chat template is not' in message
  assert r"expected '<|im_start|>system\nPlease reason step" in message
  assert r"found '[turn]system\nPlease" in message


def test_a_template_that_drops_the_system_message_is_named(folder, model):
  """A part that is missing at its place is an error, wherever else it is."""
  changed_template(
    model, lambda _: "<|im_start|>user\n{{ messages[-1]['content'] }}<|im_end|>"
  )
  with pytest.raises(ValueError, match='expected .*system.*, found'):
    prompts.check(recipe_lib.load(PAPER), config_of(folder), str(model))


def test_a_tokenizer_without_a_chat_template_is_named(folder, model):
  """A base model's tokenizer often has none."""
  changed_template(model, lambda _: None)
  with pytest.raises(ValueError, match=f'{model}.*has no chat template'):
    prompts.check(recipe_lib.load(PAPER), config_of(folder), str(model))


def test_a_problem_that_is_too_long_is_named(folder):
  """It is an error also where training leaves out long prompts."""
  config = config_of(folder)
  rollout = dataclasses.replace(config.rollout, max_prompt_tokens=100)
  assert rollout.overlong_prompt == 'skip'
  config = dataclasses.replace(config, rollout=rollout)
  with pytest.raises(ValueError) as caught:
    prompts.check_lengths(config, str(folder / 'model'))
  message = str(caught.value)
  assert "evaluation set 'aime24': " in message
  assert 'oat_aime.jsonl:1' in message and ' tokens, more than' in message
  assert 'max_prompt_tokens = 100' in message
  assert 'measured on all of its problems' in message


def in_place(paper, row, folder):
  """A row whose training leaves out long prompts, on the rows by hand."""
  (run,) = recipes.members(paper, 'tiny', [row], 1, str(folder))
  rollout = dataclasses.replace(
    run.config.rollout, max_prompt_tokens=8, overlong_prompt='skip'
  )
  return dataclasses.replace(run.config, rollout=rollout)


@pytest.mark.parametrize(
  ('paper', 'row', 'name', 'file'),
  [
    ('simpo', 'simpo_mistral_base', 'arc_challenge', 'arc_challenge.jsonl:1'),
    ('torl', 'torl_1p5b', 'aime24', 'aime24.jsonl:1'),
    ('toolrl', 'grpo_1p5b', 'level_1', 'api_bank_1.jsonl:1'),
  ],
)
def test_long_problems_of_all_kinds_of_tasks(paper, row, name, file, tmp_path):
  """Options, episodes with tools and reward functions."""
  config = in_place(paper, row, tmp_path)
  with pytest.raises(ValueError, match=f"set '{name}.*{file}.*tokens, more th"):
    prompts.check_lengths(config, str(tmp_path / 'tiny' / 'model'))


def test_a_long_option_is_named(tmp_path):
  """Its place, its length and the limit."""
  config = in_place('simpo', 'simpo_mistral_base', tmp_path)
  (one,) = config.evaluation.sets
  sets = (dataclasses.replace(one, max_response_tokens=4),)
  config = dataclasses.replace(
    config,
    rollout=dataclasses.replace(config.rollout, max_prompt_tokens=512),
    evaluation=dataclasses.replace(config.evaluation, sets=sets),
  )
  with pytest.raises(ValueError, match='option 0 .* more than the limit of 4'):
    prompts.check_lengths(config, str(tmp_path / 'tiny' / 'model'))


def test_the_program_checks_templates_before_it_compiles(
  folder, tmp_path, monkeypatch, compiled
):
  """The model lies where the recipe says, with another template."""
  monkeypatch.chdir(tmp_path)
  (run,) = recipes.members(PAPER, 'paper', [ROW], 1, 'w')
  place = pathlib.Path(run.config.model.path)
  place.mkdir(parents=True)
  for path in (folder / 'model').glob('*.json'):
    (place / path.name).write_bytes(path.read_bytes())
  changed_template(place, lambda text: text.replace('assistant', 'model'))
  monkeypatch.setattr(data_files, 'read_manifest', lambda *_: {})
  before = compiled.copy()
  with pytest.raises(ValueError, match=f'{place}/tokenizer_config.json'):
    recipes.check_files(PAPER, [run])
  assert compiled == before


def run_of(folder, **changes):
  """A run in miniature of which something is changed."""
  (run,) = recipes.members('verl_baselines', 'tiny', ['ppo_0p5b'], 1, folder)
  return sweep_runs.runs([{**run.setting, **changes}])[0]


def test_a_prompt_that_is_too_long_stops_a_run(tmp_path, compiled):
  """File, line, tokens and limit are named, before anything is compiled."""
  run = run_of(str(tmp_path), **{'rollout.max_prompt_tokens': 40})
  before = compiled.copy()
  with pytest.raises(ValueError) as caught:
    sweep_runs.execute(run, str(tmp_path))
  message = str(caught.value)
  assert 'verl_gsm8k_train.jsonl:1' in message
  assert 'rollout.max_prompt_tokens = 40' in message
  assert not PROGRAMS & {*(compiled - before)}


def test_an_evaluation_set_that_is_not_there_stops_a_run(tmp_path, compiled):
  """The missing file is named, before anything is compiled."""
  run = run_of(str(tmp_path))
  (path,) = tmp_path.rglob('data/verl_gsm8k_test.jsonl')
  path.unlink()
  before = compiled.copy()
  with pytest.raises(FileNotFoundError, match='verl_gsm8k_test.jsonl'):
    sweep_runs.execute(run, str(tmp_path))
  assert not PROGRAMS & {*(compiled - before)}
