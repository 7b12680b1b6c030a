"""Writes rows with samples of a policy, for reward models of worlds.Motifs.

python -m experiments.papers.proxy.policy_rows --config=configs/worlds/proxy.py
  --workdir=runs/grpo --form=beside --out=rows.jsonl

The samples are those that a run has logged (guards.log_rollouts), of all its
iterations or of the --last ones.
  beside   {prompt, chosen, rejected, samples}: the comparisons of the task,
           each with --samples different samples of its prompt, in turn
  pair     {prompt, chosen, rejected}: two samples of a prompt in one iteration
           whose gold scores differ most; each pair of texts once
  random   the same of the held-out comparisons of the task, which are of random
           texts
"""

from collections.abc import Iterator, Sequence
import itertools
import json
from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.worlds import Motifs

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is Motifs.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
_WORKDIR = flags.DEFINE_string('workdir', None, 'Run that has sampled.')
_FORM = flags.DEFINE_enum(
  'form', 'beside', ('beside', 'pair', 'random'), 'What a row is.'
)
_LAST = flags.DEFINE_integer('last', None, 'Of these iterations.', 1)
_SAMPLES = flags.DEFINE_integer('samples', 4, 'Of a row of beside.', 2)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)

Rows = Iterator[dict[str, Any]]


def compared(task: Motifs, split: str) -> Rows:
  """The comparisons of a split, in order."""
  for index in range(task.num_prompts(split)):
    example = task.example(split, index)
    chosen, rejected = task.recorded(example)
    yield {
      'prompt': example.prompt,
      'chosen': chosen.text,
      'rejected': rejected.text,
    }


def beside(task: Motifs, logged: Sequence[dict[str, Any]], count: int) -> Rows:
  """The comparisons to learn from, with samples of their prompts in turn.

  Raises: ValueError naming a prompt with too few different samples.
  """
  texts: dict[str, dict[str, None]] = {}
  for sample in logged:
    if sample['response']:
      texts.setdefault(sample['prompt'], {})[sample['response']] = None
  turns = {prompt: itertools.cycle(own) for prompt, own in texts.items()}
  for row in compared(task, 'train'):
    prompt = row['prompt']
    if len(texts.get(prompt, ())) < count:
      raise ValueError(
        f'--workdir={_WORKDIR.value} has {len(texts.get(prompt, ()))} samples '
        f'of the prompt {prompt!r}, and --samples={count}'
      )
    yield {**row, 'samples': list(itertools.islice(turns[prompt], count))}


def extremes(task: Motifs, logged: Sequence[dict[str, Any]]) -> Rows:
  """The best and the worst sample of each group, by the gold score."""

  def gold(text: str):
    return task.gold(text)

  def group(sample: dict[str, Any]):
    return sample['step'], sample['prompt']

  seen = set()
  for (_, prompt), own in itertools.groupby(logged, group):
    texts = [sample['response'] for sample in own if sample['response']]
    pair = max(texts, key=gold, default=''), min(texts, key=gold, default='')
    if gold(pair[0]) > gold(pair[1]) and (prompt, *pair) not in seen:
      seen.add((prompt, *pair))
      yield {'prompt': prompt, 'chosen': pair[0], 'rejected': pair[1]}


def main(argv):
  """Writes the file."""
  del argv
  outputs.check_file('out', _OUT.value)
  config = configuration.build(
    _CONFIG.value, 'reward_model', fields.once(_SET.value)
  )
  task = config.task
  if not isinstance(task, Motifs):
    raise ValueError(
      f'--config={_CONFIG.value} has the task {type(task).__name__}: expected '
      'Motifs'
    )
  if _FORM.value == 'random':
    found = compared(task, 'validation')
  else:
    if _WORKDIR.value is None:
      raise ValueError(f'--form={_FORM.value} without --workdir')
    logged = log_rows.read(_WORKDIR.value, _LAST.value)
    if _FORM.value == 'pair':
      found = extremes(task, logged)
    else:
      found = beside(task, logged, _SAMPLES.value)
  rows = list(found)
  if not rows:
    raise ValueError(
      f'--workdir={_WORKDIR.value} has no two samples to compare'
    )
  outputs.write_rows(_OUT.value, rows)
  print(json.dumps({'out': _OUT.value, 'rows': len(rows)}))


if __name__ == '__main__':
  configuration.run(main)
