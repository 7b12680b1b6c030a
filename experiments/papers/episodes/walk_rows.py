"""Rows for cloning from recorded walks, with noise, and from random games.

  python -m experiments.papers.episodes.walk_rows
    --config=configs/worlds/keydoor.py --noise=0.5 --turns=10 --out=rows.jsonl
  python -m experiments.papers.episodes.walk_rows --noise=1.0 --out=rows.jsonl
    --config=configs/kuhn.py

A player does the first action of the episode's own solution from where it is,
or with probability --noise, and where there is none, any that can be given; so
does every player of a game. Rows of --out are all that the player has read and
written before an action, and the action. The token that ends a turn shorter
than rollout.turns.max_turn_tokens is not text, and would be missing after all
actions but the last: policies whose turns have one learn from
tasks.RecordedWalks instead, and their rows are refused where the task has the
tokenizer. Tasks are those of tasks.RecordedWalks, and with --noise=1
tasks.OpenSpiel, which knows no solutions.
Prints one JSON line: rows, and the share of episodes that were done.
"""

from collections.abc import Sequence
import json
from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from rl_jax.config import ExperimentConfig
from rl_jax.runs import policy
from rl_jax.tasks import draws
from rl_jax.tasks.environments.base import (
  is_environment,
  seed_of,
)

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration of such a task.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, as in train.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_EPISODES = flags.DEFINE_integer('episodes', 500, 'Walks.', lower_bound=1)
_TURNS = flags.DEFINE_integer('turns', 10, 'Of a walk.', lower_bound=1)
_NOISE = flags.DEFINE_float(
  'noise', 0.0, 'Share of random actions.', lower_bound=0.0, upper_bound=1.0
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the noise.')


def walk(
  task: Any, index: int, noise: float, turns: int, stream: draws.Draws
) -> tuple[list[dict[str, str]], bool]:
  """(a row for each action, whether the episode was done).

  Raises: ValueError for a task whose episodes do not say what can be done.
  """
  name, example = type(task).__name__, task.example('train', index)
  if not is_environment(task):
    _check(name, commands=None)
  episode = task.start(example)
  game = task.traits.players > 1

  def observed(reply):
    return reply.observation if game else (reply.observation,)

  rows, reply = [], episode.reset(seed_of(example))
  _check(name, commands=episode.commands)
  if noise < 1.0:
    _check(name, solution=episode.solution)
  read = [example.prompt + text for text in observed(reply)]
  while len(rows) < turns and not (reply.done or reply.truncated):
    player = reply.acting
    best = () if stream.uniform() < noise else episode.solution
    action = best[0] if best else stream.choice(episode.commands)
    rows.append({'prompt': read[player], 'completion': action})
    read[player] += action
    reply = episode.step(action)
    read = [a + b for a, b in zip(read, observed(reply), strict=True)]
  episode.close()
  return rows, reply.done


def _check(task, **found):
  """Raises ValueError for what episodes of the task do not say."""
  for name, value in found.items():
    if value is None:
      raise ValueError(
        f'--config: the task is {task}, whose episodes have no property '
        f'{name!r}'
      )


def check_lengths(
  config: ExperimentConfig, rows: Sequence[dict[str, str]]
) -> None:
  """Raises ValueError for an action that an end token would close.

  The tokenizer is that of the task: of a model on disk nothing is checked.
  """
  turns = config.rollout.turns
  if turns is None or config.model.path is not None:
    return
  tokenizer, limit = policy.task_tokenizer(config.task), turns.max_turn_tokens
  for action in dict.fromkeys(row['completion'] for row in rows):
    size = len(tokenizer.encode(action))
    if size != limit:
      raise ValueError(
        f'--config: {action!r} has {size} tokens, but turns have '
        f'rollout.turns.max_turn_tokens = {limit}, and rows are for actions of '
        'just so many: train on tasks.RecordedWalks instead'
      )


def main(argv: Sequence[str]) -> None:
  """Walks and writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  found, reached = [], 0
  config = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value))
  task = config.task
  for index in range(_EPISODES.value):
    stream = draws.Draws('walk', _SEED.value, index)
    grid = index % task.num_prompts('train')
    rows, done = walk(task, grid, _NOISE.value, _TURNS.value, stream)
    found += rows
    reached += done
  check_lengths(config, found)
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'rows': len(found), 'done': reached / _EPISODES.value}))


if __name__ == '__main__':
  configuration.run(main)
