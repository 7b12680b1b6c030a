"""Messages of worlds.NarratedKeyDoor for an annotator that is a model.

  python -m experiments.papers.episodes.message_rows --form=lessons
    --config=configs/worlds/told_keydoor.py --count=20 --errors=0.2
    --out=lessons.jsonl
  python -m experiments.papers.episodes.message_rows --form=questions
    --config=configs/worlds/told_keydoor.py --workdir=runs/agent
    --out=questions.jsonl
  python -m experiments.papers.episodes.message_rows --form=table
    --config=configs/worlds/told_keydoor.py --questions=questions.jsonl
    --answers=answers.json --out=table.jsonl

  lessons    {prompt, completion}: so many messages that are drawn, 'S01:', and
             whether they help ('1' or '0'), turned over with chance --errors
  questions  the same of all messages that a run has logged, with right labels
  table      {message, label} for FeedbackReward.table: what a model has
             answered to the questions (--answers, of `experiments.evaluate
             --out`), anything but '1' as 0; without --answers what is right
Helpful is what FeedbackReward calls so. Prints a line of JSON; for `table` with
the share of right labels.
"""

from collections.abc import Iterable, Sequence
import json
from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.pieces.shaping import FeedbackReward
from rl_jax.records import metrics
from rl_jax.tasks import draws
from rl_jax.worlds import NarratedKeyDoor
from rl_jax.worlds.narrated_key_door import MESSAGES

FORMS = ('lessons', 'questions', 'table')
_HELPFUL = ''.join(MESSAGES[i] for i in FeedbackReward().helpful)

_FORM = flags.DEFINE_enum('form', None, FORMS, 'Of rows.', required=True)
_CONFIG = flags.DEFINE_string(
  'config', None, 'Whose task is NarratedKeyDoor.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, as in train.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_COUNT = flags.DEFINE_integer('count', 20, 'Lessons.', 1)
_ERRORS = flags.DEFINE_float('errors', 0.0, 'Of lessons.', 0.0, 1.0)
_SEED = flags.DEFINE_integer('seed', 0, 'Of lessons.')
_WORKDIR = flags.DEFINE_string('workdir', '', 'Run with a log of episodes.')
_QUESTIONS = flags.DEFINE_string('questions', '', 'JSONL.')
_ANSWERS = flags.DEFINE_string('answers', '', 'JSON of a model.')

Row = dict[str, str]


def row_of(letter: str, place: str) -> Row:
  """The question about a message, and the right answer."""
  return {'prompt': f'{letter}{place}:', 'completion': label_of(letter)}


def label_of(letter: str) -> str:
  """'1' for a message that helps, else '0'."""
  return str(int(letter in _HELPFUL))


def every(size: int) -> list[Row]:
  """All messages of a grid."""
  places = [f'{x}{y}' for x in range(size) for y in range(size)]
  return [row_of(letter, place) for letter in MESSAGES for place in places]


def lessons(size: int, count: int, errors: float, seed: int) -> list[Row]:
  """So many different messages, some with the wrong label."""
  stream = draws.Draws('message lessons', seed)
  rows = sorted(every(size), key=lambda row: stream.uniform())[:count]
  return [
    row | {'completion': str(1 - int(row['completion']))}
    if stream.uniform() < errors
    else row
    for row in rows
  ]


def questions(samples: Iterable[dict[str, Any]]) -> list[Row]:
  """The messages of a log, each once, in their order."""
  found = {}
  for sample in samples:
    for turn in sample.get('turns', ())[1:]:  # the first one has the grid
      text = turn['observation']  # '01-S>'
      row = row_of(text[3], text[:2])
      found[row['prompt']] = row
  return sorted(found.values(), key=lambda row: row['prompt'])


def table(
  rows: Sequence[Row], answers: Sequence[str], size: int
) -> tuple[list[dict[str, Any]], float]:
  """(rows of the table, the share of right labels).

  Raises: ValueError unless there is an answer to every question.
  """
  if len(rows) != len(answers):
    raise ValueError(f'{len(rows)} questions and {len(answers)} answers')
  found, right = [], 0
  for row, answer in zip(rows, answers, strict=True):
    letter, x, y = row['prompt'][:3]
    kind, label = MESSAGES.index(letter), int(answer == '1')
    message = (kind * size + int(x)) * size + int(y)
    found.append({'message': message, 'label': label})
    right += label == int(label_of(letter))
  return found, right / len(rows)


def main(argv: Sequence[str]) -> None:
  """Writes the file."""
  del argv
  outputs.check_file('out', _OUT.value)
  task = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value)).task
  if not isinstance(task, NarratedKeyDoor):
    raise ValueError(
      f'--config: the task is {type(task).__name__}, not NarratedKeyDoor'
    )
  about: dict[str, Any] = {'out': _OUT.value}
  if _FORM.value == 'lessons':
    found = lessons(task.size, _COUNT.value, _ERRORS.value, _SEED.value)
  elif _FORM.value == 'questions':
    found = questions(log_rows.read(_WORKDIR.value, None))
  else:
    rows = metrics.read_jsonl(_QUESTIONS.value)
    answers = [row['completion'] for row in rows]
    if _ANSWERS.value:
      with open(_ANSWERS.value) as file:
        answers = json.load(file)['responses']
    found, about['right'] = table(rows, answers, task.size)
  if not found:
    raise ValueError(f'--form={_FORM.value}: no messages')
  outputs.write_rows(_OUT.value, found)
  print(json.dumps(about | {'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
