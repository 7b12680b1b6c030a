"""Rows that judges and pairs need, of samples of worlds.FamilyChains.

python -m experiments.papers.worlds.chain_rows --form=verified
  --workdir=runs/grpo --last=30 --out=pairs.jsonl

--workdir is a run that has logged samples (guards.log_rollouts); those that the
limit of tokens has cut are left out. What is written, other rows than those of
bench and samples once:
  verified   pairs by the conditions of VerIPO's verifier: the first sample of a
             group that is right, agrees with its own chain, has a check and as
             many steps as rules, against the first wrong one, the first right
             one that contradicts its chain, and the first right one with more
             steps than rules
  steps      {prompt, completions, labels} for tasks.StepRows: the parts of a
             response, and whether each is right (OPRM)
  bench      {prompt, steps, label, final_answer_correct}: the same parts and
             the first wrong one, for `experiments.evaluate_reward --steps`.
             Equal samples of a prompt stay
  samples    {prompt, completion, label}: each sample and whether its answer is
             right, but for empty ones. Equal samples stay
  critiques  what a judge of steps is asked and the right critique, as
             {prompt, completion}: '1', or '0' for a part that is wrong, and how
             many are right, '101 2/3'. --errors is the chance that a verdict is
             turned over. With --workdir '' the responses are those of the
             teacher of --config
  agreed     critiques in the log of a judge that agree with the outcome: all
             parts are called right if, and only if, the answer is (StepORLM)
"""

from collections.abc import Iterable, Iterator, Sequence
import itertools
import json
import re
from typing import Any

from absl import flags

from experiments.flags import configuration, fields, outputs
from experiments.pipelines import rows as log_rows
from rl_jax.tasks import base, draws
from rl_jax.worlds import FamilyChains, family_chains

FORMS = ('verified', 'steps', 'bench', 'samples', 'critiques', 'agreed')
# Forms in which equal rows stay.
REPEATED = ('bench', 'samples')
_CRITIQUE = re.compile(r'([01]+) (\d+)/(\d+)')

_FORM = flags.DEFINE_enum('form', None, FORMS, 'Of rows.', required=True)
_WORKDIR = flags.DEFINE_string('workdir', '', 'A run with a log of samples.')
_LAST = flags.DEFINE_integer('last', None, 'Last iterations of it.', 1)
_CONFIG = flags.DEFINE_string('config', '', 'Whose teacher writes.')
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
_ERRORS = flags.DEFINE_float('errors', 0.0, 'Of verdicts.', 0.0, 1.0)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)

Sample = dict[str, Any]


def finished(samples: Iterable[Sample]) -> list[Sample]:
  """The samples of a log that were judged and that no limit has cut."""
  return [
    x for x in samples if x['error'] is None and x['ended_by'] is not None
  ]


def rewards(prompt: str, response: str) -> dict[str, float]:
  """The components of a response."""
  answer = family_chains.solution(prompt)[-1]
  example = base.Example(prompt=prompt, answer=answer, id=0)
  return FamilyChains().reward(example, response)


def fault(prompt: str, response: str) -> str:
  """Why a verifier rejects a response: 'wrong', 'inconsistent', 'repeats'; or
  'brief' if it is right but lacks a check or steps; '' if it is good.
  """
  found = rewards(prompt, response)
  if not found['outcome']:
    return 'wrong'
  if not found['consistent']:
    return 'inconsistent'
  if found['repeats']:
    return 'repeats'
  rules = len(family_chains.solution(prompt))
  return '' if found['checked'] and found['written'] >= rules else 'brief'


def verified(samples: Iterable[Sample]) -> Iterator[dict[str, str]]:
  """At most a pair for each reason to reject, of each group of a log."""

  def group(sample):
    return sample['step'], sample['prompt']

  for (_, prompt), own in itertools.groupby(samples, group):
    first: dict[str, str] = {}
    for sample in own:
      response = sample['response']
      first.setdefault(fault(prompt, response), response)
    for reason in ('wrong', 'inconsistent', 'repeats'):
      if '' in first and reason in first:
        yield {
          'prompt': prompt,
          'chosen': first[''],
          'rejected': first[reason],
        }


def step_rows(samples: Iterable[Sample]) -> Iterator[dict[str, Any]]:
  """The parts of each response that has some, with their labels."""
  for sample in samples:
    if parts := family_chains.parts(sample['response']):
      yield {
        'prompt': sample['prompt'],
        'completions': parts,
        'labels': family_chains.verdicts(sample['prompt'], sample['response']),
      }


def bench(samples: Iterable[Sample]) -> Iterator[dict[str, Any]]:
  """The parts of each response and its first wrong one, -1 without one."""
  for row in step_rows(samples):
    labels, response = row['labels'], ''.join(row['completions'])
    yield {
      'prompt': row['prompt'],
      'steps': row['completions'],
      'label': labels.index(0.0) if 0.0 in labels else -1,
      'final_answer_correct': bool(rewards(row['prompt'], response)['outcome']),
    }


def labelled(samples: Iterable[Sample]) -> Iterator[dict[str, Any]]:
  """Each sample that is not empty, with its outcome."""
  for sample in samples:
    asked, said = sample['prompt'], sample['response']
    if not said:
      continue
    label = bool(rewards(asked, said)['outcome'])
    yield {'prompt': asked, 'completion': said, 'label': label}


def critique(verdicts: Sequence[float]) -> str:
  """'101 2/3' of (1, 0, 1)."""
  marks = ''.join(str(int(x)) for x in verdicts)
  return f'{marks} {marks.count("1")}/{len(marks)}'


def critiques(
  samples: Iterable[Sample], errors: float
) -> Iterator[dict[str, str]]:
  """Questions about responses, with critiques that are wrong at a rate."""
  for sample in samples:
    asked, said = sample['prompt'], sample['response']
    stream = draws.Draws('chain critique', asked, said)
    verdicts = [
      1.0 - x if stream.uniform() < errors else x
      for x in family_chains.verdicts(asked, said)
    ]
    if verdicts:
      yield {
        'prompt': family_chains.QUESTION.format(prompt=asked, response=said),
        'completion': critique(verdicts),
      }


def agreed(samples: Iterable[Sample]) -> Iterator[dict[str, str]]:
  """The well-formed critiques in a judge's log that agree with the outcome."""
  for sample in samples:
    question, written = sample['prompt'], sample['response']
    prompt, mark, said = question.removesuffix('#').partition('=')
    match = _CRITIQUE.fullmatch(written)
    if match is None:
      continue
    marks, right, count = match.groups()
    complete = len(marks) == len(family_chains.parts(said)) == int(count)
    outcome = rewards(prompt + mark, said)['outcome']
    same = ('0' not in marks) == bool(outcome)
    if complete and same and marks.count('1') == int(right):
      yield {'prompt': question, 'completion': written}


_WRITERS = {
  'verified': verified,
  'steps': step_rows,
  'bench': bench,
  'samples': labelled,
  'agreed': agreed,
}


def _taught(config: str, sets: Sequence[str]) -> list[Sample]:
  """Responses of the teacher to all prompts of the train split."""
  task = configuration.build(config, 'sft', fields.once(sets)).task
  examples = (task.example('train', i) for i in range(task.num_train))
  return [{'prompt': x.prompt, 'response': task.target(x)} for x in examples]


def main(argv):
  """Writes the file and prints the number of its rows."""
  del argv
  if bool(_WORKDIR.value) == bool(_CONFIG.value):
    raise ValueError(
      f'--workdir={_WORKDIR.value} and --config={_CONFIG.value}: give one'
    )
  outputs.check_file('out', _OUT.value)
  if _WORKDIR.value:
    read = log_rows.read(_WORKDIR.value, _LAST.value)
    samples = finished(read)
  else:
    samples = _taught(_CONFIG.value, _SET.value)
  if _FORM.value == 'critiques':
    rows = critiques(samples, _ERRORS.value)
  else:
    rows = _WRITERS[_FORM.value](samples)
  found = list(rows)
  if _FORM.value not in REPEATED:
    found = list({json.dumps(row): row for row in found}.values())
  if not found:
    raise ValueError(f'--form={_FORM.value}: no rows')
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'out': _OUT.value, 'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
