"""Rows for cloning from recorded walks in KeyDoor, with noise.

  python -m experiments.walk_rows --config=configs/keydoor.py
    --set=task.words=phrase --noise=1.0 --turns=10 --out=rows.jsonl

A player does the first action of a shortest way to the goal, or with
probability --noise any of the six. Rows of --out are what is read before each
action, with the actions before it, and the action's words.
Prints one JSON line: rows, and the share of episodes at the goal.
"""

from collections.abc import Sequence
import dataclasses
import json

from absl import app, flags

from experiments.flags import configuration, outputs
from rl_jax.tasks import KeyDoor, draws
from rl_jax.tasks.environments.base import SEED
from rl_jax.tasks.environments.key_door import Walk
from rl_jax.tasks.environments.key_door_words import ACTIONS, WORDS

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is KeyDoor.', required=True
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
  task: KeyDoor, index: int, noise: float, turns: int, stream: draws.Draws
) -> tuple[list[dict[str, str]], bool]:
  """(a row for each action, whether the goal was reached) in a grid."""
  example = task.example('train', index)
  episode, words, rows = Walk(task), WORDS[task.words], []
  seed = example.meta[SEED]
  layout = task.layout(seed)
  reply = episode.reset(seed)
  read = reply.observation
  while len(rows) < turns and not reply.done:
    *place, holds = reply.state
    here = dataclasses.replace(layout, start=tuple(place))
    action = here.solution(holds)[0]
    if stream.uniform() < noise:
      action = stream.below(len(ACTIONS))
    rows.append({'prompt': read, 'completion': words[action]})
    reply = episode.step(words[action])
    read += words[action] + reply.observation
  return rows, reply.done


def main(argv: Sequence[str]) -> None:
  """Walks and writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  task = configuration.build(_CONFIG.value, 'sft', _SET.value).task
  if not isinstance(task, KeyDoor):
    raise app.UsageError(
      f'--config: the task is {type(task).__name__}, not KeyDoor'
    )
  found, reached = [], 0
  for index in range(_EPISODES.value):
    stream = draws.Draws('walk', _SEED.value, index)
    grid = index % task.num_prompts('train')
    rows, done = walk(task, grid, _NOISE.value, _TURNS.value, stream)
    found += rows
    reached += done
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'rows': len(found), 'goal': reached / _EPISODES.value}))


if __name__ == '__main__':
  configuration.run(main)
