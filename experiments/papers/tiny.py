"""Recipes in miniature: a tiny model, a few rows written here, two iterations.

The rows have the columns of the published files and take the same way: raw
file, conversion, task, prompt, grader, evaluation, table. The model has the
architecture of the recipe's, two heads of 8 and a vocabulary of bytes, with the
tokens and the chat template of ChatML. Its numbers mean nothing.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
from typing import Any

import jax

from experiments.papers import data_files, settings
from experiments.papers import recipe as recipe_lib
from experiments.papers.recipe import DataSource, Recipe, Row
from experiments.sweeps import runs as sweep_runs
from rl_jax.models.files import gguf_import, model_dir
from rl_jax.models.params import init_params
from rl_jax.models.tokenizer import HFTokenizer
from rl_jax.models.transformer import ModelConfig
from rl_jax.tasks import (
  AlfWorld,
  PreferenceRows,
  QuestionAnswer,
  Reworded,
  WithTools,
)
from rl_jax.tasks.environments import alf_world

# (question, answer); written for this package.
PROBLEMS = (
  ('Ann has 3 red pens and 4 blue ones. How many pens has she?', '7'),
  ('A box holds 6 eggs. How many eggs are in 5 boxes?', '30'),
  ('Tom reads 12 of 40 pages. How many are left?', '28'),
  ('A rope of 18 metres is cut into 3 equal parts. How long is each?', '6'),
  ('What is the sum of 15 and 27?', '42'),
  ('A bus has 50 seats, and 35 are taken. How many are free?', '15'),
)
CHAT_TEMPLATE = (
  "{% if messages[0]['role'] != 'system' %}<|im_start|>system\n"
  'You are a helpful assistant.<|im_end|>\n{% endif %}'
  "{% for turn in messages %}<|im_start|>{{ turn['role'] }}\n"
  "{{ turn['content'] }}<|im_end|>\n{% endfor %}"
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}'
)
_GOLD = {'hash': '#### {}', 'boxed': '\\boxed{{{}}}', 'whole': '{}'}
# What is set of every row, whatever the row sets.
SIZES = {
  'iterations': 2,
  'model.config': 'null',
  'model.compute_dtype': 'float32',
  'model.remat': 'false',
  'rollout.num_prompts': 4,
  'rollout.max_prompt_tokens': 512,
  'rollout.max_response_tokens': 8,
  'rollout.max_rounds': 1,
  'rollout.slots': 'null',
  'update.minibatch_prompts': 2,
  'update.microbatch_prompts': 'null',
  'update.microbatch_rows': 'null',
  'mesh.data': 1,
  'mesh.fsdp': 1,
  'mesh.tensor': 1,
  'evaluation.every': 2,
  'evaluation.num_prompts': 4,
  'evaluation.batch_prompts': 4,
  'verifier.num_workers': 1,
}

# Further ones of episodes.
TURNS = {
  'rollout.turns.max_turns': 2,
  'rollout.turns.max_turn_tokens': 4,
  'rollout.turns.max_observation_tokens': 16,
  'rollout.max_response_tokens': 32,
}
# A household of two places; written for this package.
GAME = {
  'first': 'room',
  'states': {
    'room': {
      'text': 'You see a desk 1 and a bed 1. Your task is to: take the pen.',
      'commands': {
        'go to desk 1': 'desk',
        'go to bed 1': 'bed',
        'help': 'room',
      },
    },
    'bed': {'text': 'The bed is empty.', 'commands': {'go to desk 1': 'desk'}},
    'desk': {
      'text': 'On the desk 1 is a pen 1.',
      'commands': {'go to bed 1': 'bed', 'take pen 1': 'done'},
    },
    'done': {'text': 'You have the pen.', 'commands': {}},
  },
  'won': ['done'],
}
_FILES = ('.sources', '.path', '.functions', '.folder')
_OF_ROWS = {
  *('model.path', 'rollout.group_size', 'model.lora_rank'),
  *('rollout.round_prompts', 'rollout.recorded_prompts'),
  *('update.minibatch_rows', 'update.microbatch_rows'),
}


def sweep(
  paper: str, folder: str, rows: Sequence[str] = (), seeds: int = 1
) -> list[sweep_runs.Setting]:
  """The settings of rows (none: all) and seeds; writes their files to folder.

  A row's field `tiny` has what SIZES lacks for it.
  """
  recipe = recipe_lib.load(paper)
  where = write(recipe, os.path.abspath(folder))
  found = []
  for name in rows or recipe.rows:
    row = recipe_lib.row_of(paper, name)
    config = recipe_lib.experiment(paper, name)
    small: dict[str, Any] = {
      **SIZES,
      'model.path': where['model'],
      'rollout.group_size': min(config.rollout.group_size, 4),
    }
    small |= files_of(recipe, config.task, where)
    if config.rollout.recorded_prompts:
      small['rollout.recorded_prompts'] = SIZES['rollout.num_prompts']
    if not config.evaluation.every:
      small['evaluation.every'] = 0
    if config.rollout.turns is not None:
      small |= TURNS
    if config.update.minibatch_rows:
      small['update.minibatch_prompts'] = 'null'
      small['update.minibatch_rows'] = 2 * small['rollout.group_size']
    if config.rollout.round_prompts:
      small['rollout.round_prompts'] = 8
    small |= tools(config.task, 'task', where)
    small |= games(config.task, 'task', where)
    if config.model.lora_rank:
      small['model.lora_rank'] = 2
    by_set = {}
    for i, one in enumerate(config.evaluation.sets):
      path, samples = f'evaluation.sets.{i}', min(one.num_samples, 2)
      small[f'{path}.num_samples'] = samples
      known = recipe.evaluation.get(one.name)
      named = known.options if known else ''
      by_set[one.name] = f'{one.name}/{named or settings.accuracy(samples)}'
      if one.name in recipe.played:
        small[f'{path}.limit'] = SIZES['evaluation.num_prompts']
        continue
      file = where[recipe.evaluation[one.name].data.name]
      inner, _ = settings.rows_of(one.task)
      small[f'{path}.{inner}.sources'] = repr({'test': file})
      small |= tools(one.task, f'{path}.task', where)
      small[f'{path}.max_response_tokens'] = 8
    for i, average in enumerate(config.evaluation.averages):
      names = [name.partition('/')[0] for name in average.metrics]
      metrics = tuple(by_set[name] for name in names)
      small[f'evaluation.averages.{i}.metrics'] = repr(metrics)
    found += [
      setting(paper, row)
      | small
      | dict(pair.split('=', 1) for pair in row.tiny)
      | {'seed': seed}
      for seed in range(seeds)
    ]
  return found


def tools(task: Any, path: str, where: Mapping[str, str]) -> dict[str, str]:
  """Changes by which a task asks a file in place of a retriever."""
  if not isinstance(task, WithTools):
    return {}
  names = [
    'retrieve:' + where['documents'] if name.startswith('retrieve:') else name
    for name in map(str, task.functions)
  ]
  return {f'{path}.functions': repr(tuple(names))}


def games(task: Any, path: str, where: Mapping[str, str]) -> dict[str, str]:
  """Changes by which a task plays the game that is written here."""
  if isinstance(task, Reworded):
    return games(task.task, f'{path}.task', where)
  if isinstance(task, AlfWorld):
    return {f'{path}.folder': where['games']}
  return {}


def setting(paper: str, row: Row) -> sweep_runs.Setting:
  """The row as a setting of a sweep."""
  config, method, sets, adds = row.words(paper)
  more = {'add': adds} if adds else {}
  changes = dict(text.split('=', 1) for text in sets)
  return {'config': config, 'method': method, **changes, **more}


def changed(recipe: Recipe, setting: sweep_runs.Setting) -> set[str]:
  """The fields of a setting that are of the size of a run in miniature."""
  own = {
    text.partition('=')[0] for row in recipe.rows.values() for text in row.tiny
  }
  sized = {*SIZES, *TURNS, *_OF_ROWS, *own}
  return {
    name
    for name in setting
    if name in sized
    or name.startswith('evaluation.')
    or (name.startswith('task.') and name.endswith(_FILES))
  }


def files_of(
  recipe: Recipe, task: Any, where: Mapping[str, str]
) -> dict[str, str]:
  """Changes by which a task trains on the files in miniature."""
  found = {}
  for path, own in settings.all_rows(task):
    file = where[source_of(recipe, own)]
    if isinstance(own, PreferenceRows):
      found[f'{path}.path'] = file
    else:
      found[f'{path}.sources'] = repr({'train': file})
  return found


def source_of(recipe: Recipe, own: QuestionAnswer | PreferenceRows) -> str:
  """The name of the data that a task of rows trains on."""
  if isinstance(own, PreferenceRows):
    file = own.path
  else:
    (file,) = own.sources.values()
  return next(one.name for one in recipe.data if one.file == file)


def write(recipe: Recipe, folder: str) -> dict[str, str]:
  """Writes model and data; by name of a source, or what else there is."""
  places = {
    'games': os.path.join(folder, 'games'),
    'model': os.path.join(folder, 'model'),
    'documents': os.path.join(folder, 'documents.jsonl'),
  }
  with data_files.replaced(places['documents']) as file:
    for question, answer in PROBLEMS:
      text = json.dumps({'contents': f'{question}\n{answer}'}) + '\n'
      file.write(text.encode())
  for split in alf_world.FOLDERS.values():
    path = os.path.join(places['games'], split, 'pen', alf_world.WRITTEN)
    with data_files.replaced(path) as file:
      file.write(json.dumps(GAME).encode())
  if not os.path.exists(places['model']):
    write_model(settings.sizes(recipe.models[0]), places['model'])
  return places | write_data(recipe, folder)


def write_data(recipe: Recipe, folder: str) -> dict[str, str]:
  """Writes the data; name of a source -> its path."""
  places = {}
  for source in recipe.sources:
    rows = rows_of(recipe, source)
    small = of_hand(source, len(rows))
    where = data_files.places(small, os.path.join(folder, 'data'))
    if not os.path.exists(where.raw):
      with data_files.replaced(where.raw) as file:
        for row in rows:
          file.write((json.dumps(row) + '\n').encode())
    data_files.prepare(small, os.path.join(folder, 'data'))
    places[source.name] = where.rows
  return places


def of_hand(source: DataSource, count: int) -> DataSource:
  """The source, of a file of so many rows that are written here."""
  return dataclasses.replace(
    source,
    path='rows.jsonl',
    rows=count,
    unique=count,
    unreadable=0,
    sha256='',
    licence='as this package',
  )


def rows_of(recipe: Recipe, source: DataSource) -> list[dict[str, Any]]:
  """Rows with the columns of the source: those of the recipe, or PROBLEMS."""
  if source.name in recipe.by_hand:
    return [dict(one.row) for one in recipe.by_hand[source.name]]
  found = []
  for question, answer in PROBLEMS:
    row: dict[str, Any] = {}
    for column in source.columns:
      text = '-'
      if '{' + column + '}' == source.question:
        text = source.prefix + question + source.suffix
      elif '{' + column + '}' == source.answer:
        text = _GOLD[source.gold].format(answer)
      elif source.only and column == source.only[0]:
        text = source.only[1]
      _put(row, column.split('.'), text)
    found.append(row)
  return found


def _put(row, path, value):
  """Sets the field at a path; '1' is the second value of a list."""
  key, *rest = path
  if not rest:
    row[key] = value
  elif rest[0].isdecimal():
    row[key] = [{} for _ in range(int(rest[0]) + 1)]
    _put(row[key][-1], rest[1:], value)
  else:
    _put(row.setdefault(key, {}), rest, value)


def architecture(model: ModelConfig, vocab_size: int) -> ModelConfig:
  """A model of the same parts whose sizes are the smallest."""
  return dataclasses.replace(
    model,
    vocab_size=vocab_size,
    num_layers=1,
    width=16,
    num_heads=2,
    num_kv_heads=1,
    head_size=8,
    mlp_size=24,
    rope_theta=1e4,
    rope_scaling=None,
    tied_embeddings=True,
    max_positions=2048,
    window=model.window if 0 in model.windowed else None,
    windowed=(0,) if 0 in model.windowed else (),
  )


def write_model(model: ModelConfig, folder: str) -> None:
  """Random weights of the tiny architecture, with a tokenizer of bytes."""
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  letters = [chr(b if b in kept else next(spare)) for b in range(256)]
  tokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', *letters]
  tokenizer = HFTokenizer(
    gguf_import.byte_level_bpe('qwen2', tokens, [], [3] * 3 + [1] * 256),
    eos_ids=(2,),
    pad_id=0,
    chat_template=CHAT_TEMPLATE,
  )
  small = architecture(model, len(tokens))
  params = init_params(small, jax.random.key(0))
  model_dir.save_model(folder, small, params, tokenizer)
