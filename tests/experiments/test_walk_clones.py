"""Clones of walks learn from turns that end as those that a policy samples."""

import itertools

import pytest

from experiments.flags import configuration
from experiments.papers.episodes import walk_rows
from experiments.pipelines.stages import commands, load
from rl_jax.data.recorded import RecordedSet
from rl_jax.runs.policy import task_tokenizer
from rl_jax.tasks import draws

STAGES = commands(load('walks'), 'runs')
KEYDOOR = 'configs/worlds/keydoor.py'


def config_of(stage):
  """The configuration that the stage's flags build."""
  sets = [x for x in STAGES[stage] if x.startswith('--set=')]
  return configuration.build(
    KEYDOOR, 'sft', [x.removeprefix('--set=') for x in sets]
  )


def letters(name):
  """(the configuration, the ids of each turn of two walks) of rows of text."""
  config = config_of(f'rows_{name}')
  tokenizer, rows = task_tokenizer(config.task), []
  for index in range(2):
    rows += walk_rows.walk(config.task, index, 1.0, 10, draws.Draws('test'))[0]
  walk_rows.check_lengths(config, rows)
  return config, [tokenizer.encode(row['completion']) for row in rows]


def whole_walks(name):
  """The same of a few recorded episodes."""
  config = config_of(name)
  limits, own = config.rollout, task_tokenizer(config.task)
  records = RecordedSet(
    config.task,
    'train',
    own,
    limits.max_prompt_tokens,
    max_response_tokens=limits.max_response_tokens,
  )
  turns = []
  for index in range(20):
    ((logged, ids, trained),) = records.responses(records.example(index))
    said = itertools.groupby(zip(ids, trained, strict=True), lambda x: x[1])
    found = [[i for i, _ in part] for is_own, part in said if is_own]
    assert len(found) == len(logged.turns)
    turns += found
  return config, turns


@pytest.mark.parametrize(
  ('name', 'read'),
  [
    *(('letter', letters), ('solver', letters)),
    *(('word', whole_walks), ('phrase', whole_walks)),
  ],
)
def test_every_turn_ends_as_a_sampled_one(name, read):
  """With an end token or at the limit, wherever it is in an episode."""
  config, turns = read(name)
  limit = config.rollout.turns.max_turn_tokens
  (end,) = task_tokenizer(config.task).eos_ids
  assert len(turns) > 10
  for ids in turns:
    assert end not in ids[:-1]
    assert len(ids) == limit or (len(ids) < limit and ids[-1] == end)


@pytest.mark.parametrize(
  ('words', 'limit', 'text'),
  [
    ('word', 6, "'(up|down|left|right|take|open)' has [245] tokens, .* = 6"),
    ('letter', 2, "'[udlrto]' has 1 tokens, .* = 2, .*RecordedWalks"),
    ('phrase', 1, "'.*' has .* tokens, .* = 1"),
  ],
)
def test_rows_without_ends_are_refused(words, limit, text):
  """Rows are text, which no end token is."""
  sets = [f'task.words={words}', f'rollout.turns.max_turn_tokens={limit}']
  config = configuration.build(KEYDOOR, 'sft', sets)
  rows, _ = walk_rows.walk(config.task, 0, 1.0, 10, draws.Draws('test'))
  with pytest.raises(ValueError, match=text):
    walk_rows.check_lengths(config, rows)
