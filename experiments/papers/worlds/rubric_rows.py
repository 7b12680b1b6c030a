"""Rubrics from ordered responses, and rows for a generator and a judge of them.

python -m experiments.papers.worlds.rubric_rows --form=verdicts --filtered
  --out=verdicts.jsonl

Of every topic of worlds.PrinciplePairs there are --proposals rubrics, each
beside --responses ordered ones: with chance --noise a drawn rubric, which
stands for a contrastive generator that errs, else that of the topic. With
--filtered only what agrees with the order stays: of a rubric by which at least
half of the pairs of its responses are judged rightly, these pairs.
Rows, {prompt, completion}:
  rubrics    'gh=' and the rubric: what a generator learns; of those that stay
  verdicts   a topic, a rubric and two responses, and the number of the better
             one: what a judge learns
  topics     'gh=' and the topic's rubric, of every topic once
  questions  pairs of the validation split, in both orders, with the rubric that
             a generator has written for the topic once (--generated, of
             `experiments.evaluate --out` on the rows `topics`)
  true_questions  the same with the rubrics of the topics
--form=result reads --judged, of `experiments.evaluate --out` with samples on
the rows `questions`, and writes the share of verdicts that are right, greedy
and by the majority of the samples, and how often both orders agree.
Source: "OpenRubrics: Towards Scalable Synthetic Rubric Generation for Reward
Modeling and LLM Alignment", arXiv:2510.07743, sections 3 to 5 (read by a
digest); there language models propose and re-judge.
"""

from collections.abc import Iterator, Sequence
import itertools
import json
from typing import Any

from absl import flags
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.models.judge_source import filled
from rl_jax.tasks import draws
from rl_jax.worlds import PrinciplePairs, principle_pairs

FORMS = (
  *('rubrics', 'verdicts', 'topics', 'questions', 'true_questions', 'result'),
)
LEAST_AGREEMENT = 0.5

_FORM = flags.DEFINE_enum('form', None, FORMS, 'Of rows.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_FILTERED = flags.DEFINE_bool('filtered', False, 'What agrees only.')
_NOISE = flags.DEFINE_float('noise', 0.6, 'Of proposals.', 0.0, 1.0)
_PROPOSALS = flags.DEFINE_integer('proposals', 4, 'Of a topic.', 1)
_RESPONSES = flags.DEFINE_integer('responses', 6, 'Of a proposal.', 2)
_GENERATED = flags.DEFINE_string('generated', '', 'Rubrics of a generator.')
_JUDGED = flags.DEFINE_string('judged', '', 'Verdicts of a judge.')
_SEED = flags.DEFINE_integer('seed', 0, 'Of proposals.', 0)

Row = dict[str, str]
Pair = tuple[str, str]


def consistent(rubric: str, ordered: Sequence[str]) -> list[Pair]:
  """The pairs (better, worse) of ordered responses that a rubric confirms.

  None if less than half of all pairs are: the judge that re-judges calls the
  one better that meets the rubric more often, and none of two that do alike.
  With two responses: the pair if the judge is right.
  """
  pairs = list(itertools.combinations(ordered, 2))
  kept = [x for x in pairs if principle_pairs.better(rubric, *x) == '1']
  return kept if len(kept) >= LEAST_AGREEMENT * len(pairs) else []


def proposals(
  task: PrinciplePairs, count: int, responses: int, noise: float, seed: int
) -> Iterator[tuple[str, str, list[str]]]:
  """(topic, proposed rubric, responses from the best to the worst)."""
  for number in range(task.num_topics):
    topic = task.topic(number)
    rubric = task.rubric_of(topic)
    for place in range(count):
      stream = draws.Draws('rubric proposals', seed, topic, place)
      by_score: dict[int, str] = {}  # no two of equal score
      while len(by_score) < min(responses, 6):
        digits = principle_pairs.drawn(stream)
        by_score.setdefault(principle_pairs.met(rubric, digits), digits)
      ordered = [by_score[score] for score in sorted(by_score, reverse=True)]
      errs = stream.uniform() < noise
      proposed = stream.choice(principle_pairs.RUBRICS) if errs else rubric
      yield topic, proposed, ordered


def question(topic: str, rubric: str, pair: Pair) -> str:
  """The question of a judge of pairs."""
  slots = {'prompt': topic, 'rubric': rubric}
  slots |= {'first': pair[0], 'second': pair[1]}
  return filled(principle_pairs.TEMPLATE, slots)


def taught(
  proposed: Iterator[tuple[str, str, list[str]]], form: str, filtered: bool
) -> Iterator[Row]:
  """Rows for the generator or for the judge, of each pair in one order."""
  for number, (topic, rubric, ordered) in enumerate(proposed):
    pairs = list(itertools.combinations(ordered, 2))
    if filtered:
      pairs = consistent(rubric, ordered)
    if form == 'rubrics' and pairs:
      yield {'prompt': f'{topic}=', 'completion': rubric}
    for place, pair in enumerate(pairs if form == 'verdicts' else ()):
      turned = (number + place) % 2
      shown = pair[::-1] if turned else pair
      yield {
        'prompt': question(topic, rubric, shown),
        'completion': principle_pairs.LABELS[turned],
      }


def topics(task: PrinciplePairs) -> list[Row]:
  """Every topic with its rubric."""
  names = map(task.topic, range(task.num_topics))
  return [{'prompt': f'{x}=', 'completion': task.rubric_of(x)} for x in names]


def questions(task: PrinciplePairs, written: Sequence[str]) -> Iterator[Row]:
  """Pairs of the validation split in both orders; written: by the topic.

  Raises: ValueError unless there is a rubric for every topic.
  """
  if len(written) != task.num_topics:
    raise ValueError(
      f'--generated has {len(written)} rubrics for {task.num_topics} topics'
    )
  rubric_of = {task.topic(i): text for i, text in enumerate(written)}
  for index in range(task.num_validation):
    example = task.example('validation', index)
    topic = example.prompt[:2]
    one, two = example.prompt.partition('|')[2].removesuffix(':').split('?')
    labels = (example.answer, '21'[int(example.answer) - 1])
    for pair, label in zip(((one, two), (two, one)), labels, strict=True):
      asked = question(topic, rubric_of[topic], pair)
      yield {'prompt': asked, 'completion': label}


def result(judged: dict[str, Any]) -> dict[str, float]:
  """Shares of right verdicts; rows come in twos, a pair in both orders.

  A verdict that was not read is wrong. Votes of two labels are right if more
  than half of the samples are.
  """
  greedy_N = np.array([x == 1.0 for x in judged['greedy']])
  samples_NK = np.array([[x == 1.0 for x in own] for own in judged['samples']])
  votes_N = samples_NK.mean(axis=1) > 0.5
  return {
    'greedy': float(greedy_N.mean()),
    'votes': float(votes_N.mean()),
    'orders_agree': float((greedy_N[::2] == greedy_N[1::2]).mean()),
  }


def main(argv):
  """Writes the file and prints the number of its rows, or the result."""
  del argv
  form, task = _FORM.value, PrinciplePairs()
  outputs.check_file('out', _OUT.value)
  if form == 'result':
    with open(_JUDGED.value) as file:
      rows = [result(json.load(file))]
    print(json.dumps(rows[0]))
  elif form == 'questions':
    with open(_GENERATED.value) as file:
      rows = list(questions(task, json.load(file)['responses']))
  elif form == 'true_questions':
    rows = list(questions(task, [x['completion'] for x in topics(task)]))
  elif form == 'topics':
    rows = topics(task)
  else:
    limits = _PROPOSALS.value, _RESPONSES.value, _NOISE.value, _SEED.value
    rows = list(taught(proposals(task, *limits), form, _FILTERED.value))
  outputs.write_rows(_OUT.value, rows)
  print(json.dumps({'out': _OUT.value, 'rows': len(rows)}))


if __name__ == '__main__':
  configuration.run(main)
