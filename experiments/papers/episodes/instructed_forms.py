"""Pages that random actions leave, and instructions that a model writes.

  python -m experiments.papers.episodes.instructed_forms --form=pages
    --config=configs/worlds/web_form.py --pages=300 --out=pages.jsonl
  python -m experiments.papers.episodes.instructed_forms --form=instructed
    --config=configs/worlds/web_form.py --source=pages.jsonl
    --written=written.jsonl --out=goals.jsonl

  pages       {prompt, completion}: the page after a random value was written
              into every field, and the instruction that asks for it, which an
              instructor learns
  instructed  {goal, instruction} for worlds.InstructedForm: the pages of
              --source, and what a model has written for them (--written, of
              `experiments.evaluate --out`); with --shift, for the page so many
              rows later, which says nothing of the goal
Prints a line of JSON, for `instructed` with the share of right instructions.
Source: INET of Gur et al., "Learning to Navigate the Web", reconstructed; there
the fields are of web pages.
"""

from collections.abc import Sequence
import json
from typing import Any

from absl import app, flags

from experiments.flags import configuration, fields, outputs
from rl_jax.records import metrics
from rl_jax.tasks import draws
from rl_jax.worlds import WebForm
from rl_jax.worlds.web_form import SUBMIT

_FORM = flags.DEFINE_enum(
  'form', None, ('pages', 'instructed'), 'Of rows.', required=True
)
_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is WebForm.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=VALUE, as in train.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of rows.', required=True)
_PAGES = flags.DEFINE_integer('pages', 300, 'How many.', 1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the values.')
_SOURCE = flags.DEFINE_string('source', '', 'Pages, JSONL.')
_WRITTEN = flags.DEFINE_string('written', '', 'Instructions for them.')
_SHIFT = flags.DEFINE_integer('shift', 0, 'Rows.', 0)


def pages(task: WebForm, count: int, seed: int) -> list[dict[str, str]]:
  """Random full pages with their instructions."""
  found = []
  for index in range(count):
    stream = draws.Draws('instructed pages', seed, index)
    values = [str(stream.below(task.values)) for _ in task.names]
    asked = ''.join(a + b for a, b in zip(task.names, values, strict=True))
    found.append({'prompt': f'{asked}{SUBMIT}>', 'completion': asked})
  return found


def instructed(
  rows: Sequence[Any], written: Sequence[str], shift: int
) -> tuple[list[dict[str, str]], float]:
  """(rows of goals and instructions, the share of right ones).

  Raises: ValueError unless there is an instruction for every page.
  """
  if len(rows) != len(written):
    raise ValueError(
      f'--written has {len(written)} instructions, --source {len(rows)} pages'
    )
  texts = [written[(i + shift) % len(rows)] for i in range(len(rows))]
  found = [
    {'goal': row['completion'][1::2], 'instruction': text}
    for row, text in zip(rows, texts, strict=True)
  ]
  right = sum(
    row['completion'] == text for row, text in zip(rows, texts, strict=True)
  )
  return found, right / len(rows)


def main(argv: Sequence[str]) -> None:
  """Draws pages, or joins them with instructions; writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  config = configuration.build(_CONFIG.value, 'sft', fields.once(_SET.value))
  task = config.task
  if not isinstance(task, WebForm):
    raise app.UsageError(
      f'--config: the task is {type(task).__name__}, not WebForm'
    )
  about: dict[str, Any] = {'out': _OUT.value}
  if _FORM.value == 'pages':
    found = pages(task, _PAGES.value, _SEED.value)
  else:
    with open(_WRITTEN.value) as file:
      written = json.load(file)['responses']
    source = metrics.read_jsonl(_SOURCE.value)
    found, about['right'] = instructed(source, written, _SHIFT.value)
  outputs.write_rows(_OUT.value, found)
  print(json.dumps(about | {'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
