"""Rows for cloning from random episodes on forms, renamed by what they reached.

  python -m experiments.papers.episodes.relabelled_forms
    --config=configs/worlds/web_form.py --out=rows.jsonl

Random actions fill in a form. The first page on which all fields are filled
becomes the goal of the episode; actions that it does not need are dropped, and
it is submitted. Rows of --out are what is read before each action, and the
action. --own_goals keeps instead the episodes that reached the goal they had.
Prints one JSON line: episodes, those that are kept, and rows.
Source: the data gathering of "Pre-Trained Language Models for Interactive
Decision-Making", round 0, reconstructed from the abstract.
"""

from collections.abc import Sequence
import json
from typing import Any

from absl import app, flags

from experiments.flags import configuration, fields, outputs
from rl_jax.tasks import base, draws
from rl_jax.worlds import WebForm
from rl_jax.worlds.web_form import EMPTY, SUBMIT, Filling

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is WebForm.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, as in train.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_EPISODES = flags.DEFINE_integer(
  'episodes', 2000, 'Random ones.', lower_bound=1
)
_OWN = flags.DEFINE_bool('own_goals', False, 'No new names.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of the actions.')


def random_actions(task: WebForm, turns: int, stream: draws.Draws) -> list[str]:
  """Up to `turns`, each a value for a field or, at its share, submission."""
  every = [name + str(x) for name in task.names for x in range(task.values)]
  actions = []
  while len(actions) < turns and actions[-1:] != [SUBMIT]:
    actions.append(stream.choice([*every, SUBMIT]))
  return actions


def relabelled(
  task: WebForm, actions: Sequence[str]
) -> tuple[str, list[str]] | None:
  """(the goal that was reached, the actions it needs); None: no full page."""
  kept: dict[str, str] = {}
  for action in actions:
    if action == SUBMIT:
      return None
    kept.pop(action[0], None)  # what is written again was of no use
    kept[action[0]] = action
    if len(kept) == task.fields:
      goal = ''.join(kept[name][1] for name in task.names)
      return goal, [*kept.values(), SUBMIT]
  return None


def played(
  task: WebForm, goal: str, actions: Sequence[str]
) -> tuple[list[dict[str, str]], float]:
  """(a row for each action, the outcome) of an episode from an empty form."""
  episode, rows = Filling(task, goal, EMPTY * task.fields), []
  read, outcome = episode.reset(0).observation, 0.0
  for action in actions:
    rows.append({'prompt': read, 'completion': action})
    reply: Any = episode.step(action)
    read += action + reply.observation
    outcome = reply.rewards[base.OUTCOME]
  return rows, outcome


def main(argv: Sequence[str]) -> None:
  """Plays, renames, writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  config = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value))
  task = config.task
  if not isinstance(task, WebForm):
    raise app.UsageError(
      f'--config: the task is {type(task).__name__}, not WebForm'
    )
  if config.rollout.turns is None:
    raise ValueError('rollout.turns = None: a form is filled in within turns')
  found, kept = [], 0
  for index in range(_EPISODES.value):
    stream = draws.Draws('random form', _SEED.value, index)
    actions = random_actions(task, config.rollout.turns.max_turns, stream)
    if _OWN.value:
      example = task.example('train', index % task.num_prompts('train'))
      episode = task.pages(example)[0], actions
    else:
      episode = relabelled(task, actions)
    if episode is not None:
      rows, outcome = played(task, *episode)
      found += rows * int(outcome)
      kept += int(outcome)
  if not found:
    raise ValueError(
      f'--episodes={_EPISODES.value}: none of them filled in a form, so that '
      'there are no rows'
    )
  outputs.write_rows(_OUT.value, found)
  counts = {'episodes': _EPISODES.value, 'kept': kept, 'rows': len(found)}
  print(json.dumps(counts))


if __name__ == '__main__':
  configuration.run(main)
