"""Rows for cloning from random legal moves, in games and other environments.

  python -m experiments.move_rows --configs=configs/kuhn.py --out=rows.jsonl

Every player draws from the moves that can be made. Rows of --out are all that
the player has read and said before a move, and the move, of --episodes episodes
of each configuration. Episodes of the task have a property `commands`: those of
tasks.OpenSpiel, of MiniGrid and of others that RecordedWalks takes.
Prints one JSON line: the rows of each configuration.
"""

from collections.abc import Sequence
import json
from typing import Any

from absl import app, flags

from experiments.flags import configuration, outputs
from rl_jax.tasks import draws
from rl_jax.tasks.environments.base import (
  close,
  is_environment,
  players_of,
  seed_of,
)

_CONFIGS = flags.DEFINE_list(
  'configs', None, 'Configurations with such tasks.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, as in train, of all.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_EPISODES = flags.DEFINE_integer('episodes', 500, 'Of each.', lower_bound=1)
_TURNS = flags.DEFINE_integer('turns', 50, 'Of an episode.', lower_bound=1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the moves.')


def played(
  task: Any, index: int, turns: int, stream: draws.Draws
) -> list[dict[str, str]]:
  """A row for each move of an episode.

  Raises: ValueError for a task whose episodes say no commands.
  """
  example = task.example('train', index % task.num_prompts('train'))
  episode, rows = task.make(example), []
  if not hasattr(type(episode), 'commands'):
    raise ValueError(
      f'--configs: the task is {type(task).__name__}, whose episodes have no '
      'property `commands`'
    )
  several = players_of(task) > 1
  heard = lambda reply: reply.observation if several else (reply.observation,)
  reply = episode.reset(seed_of(example))
  read = [example.prompt + text for text in heard(reply)]
  while len(rows) < turns and not (reply.done or reply.truncated):
    player, move = reply.acting, stream.choice(episode.commands)
    rows.append({'prompt': read[player], 'completion': move})
    read[player] += move
    reply = episode.step(move)
    read = [a + b for a, b in zip(read, heard(reply), strict=True)]
  close(episode)
  return rows


def main(argv: Sequence[str]) -> None:
  """Plays and writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  found, counts = [], {}
  for name in _CONFIGS.value:
    task = configuration.build(name, 'sft', _SET.value).task
    if not is_environment(task):
      raise app.UsageError(
        f'--configs: {name}: the task is {type(task).__name__}, which has no '
        'episodes'
      )
    rows = [
      row
      for index in range(_EPISODES.value)
      for row in played(
        task,
        index,
        _TURNS.value,
        draws.Draws('moves', _SEED.value, index),
      )
    ]
    found, counts[name] = found + rows, len(rows)
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'rows': counts}))


if __name__ == '__main__':
  configuration.run(main)
