"""Lists scored by a principle, and texts written by one."""

import json
import re

import pytest

from rl_jax.judging import judge_questions
from rl_jax.models.judge_source import Judge
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.worlds import (
  PrincipleLists,
  PrincipleTexts,
  ThoughtLists,
  principle_lists,
)
from rl_jax.worlds.principle_pairs import RUBRICS, met

EXAMPLE = Example(prompt='', answer='[5, 3, 1]', id=0)


@pytest.mark.parametrize(
  'response, agreement, outcome',
  [
    ('{"1":5,"2":3,"3":1}', 1.0, 1.0),
    ('{"1":8,"2":7,"3":0}', 1.0, 1.0),  # only the order counts
    ('{"1":3,"2":5,"3":1}', 1 - 3 / 11, 0.0),
    ('{"1":4,"2":4,"3":4}', 0.5, 0.0),
    ('{"1":5,"2":3}', 0.0, 0.0),
    ('', 0.0, 0.0),
  ],
)
def test_agreement_by_hand(response, agreement, outcome):
  """E1: pairs weigh 1 + |difference|: 3, 5 and 3 of 11."""
  found = PrincipleLists(candidates=3).reward(EXAMPLE, response)
  assert found['agreement'] == pytest.approx(agreement, rel=1e-6)
  assert found['outcome'] == outcome


def texts_of(prompt):
  return re.findall(r'\[\d\]\n(\d{2})', prompt)


def test_the_answer_scores_the_texts_of_the_prompt():
  """The test split has other rubrics; the target is right without errors."""
  task = PrincipleLists()
  seen = {'train': set(), 'validation': set(), 'test': set()}
  for split, rubrics in seen.items():
    for index in range(60):
      example = task.example(split, index)
      assert example == task.example(split, index)
      rubric, texts = example.prompt[:2], texts_of(example.prompt)
      scores = json.loads(example.answer)
      assert scores == [met(rubric, text) for text in texts]
      assert len(texts) == 4 and len(set(scores)) > 1
      target = task.target(example)
      assert set(example.prompt + target) <= set(task.alphabet)
      assert task.reward(example, target) == {'agreement': 1.0, 'outcome': 1.0}
      rubrics.add(rubric)
  assert seen['train'] == seen['validation'] == set(RUBRICS[:9])
  assert seen['test'] == set(RUBRICS[9:])


def test_a_teacher_that_errs_is_the_same_always():
  task = PrincipleLists(errors=0.5)
  examples = [task.example('train', index) for index in range(40)]
  found = [task.reward(x, task.target(x))['agreement'] for x in examples]
  assert found == [
    task.reward(x, task.target(x))['agreement'] for x in examples
  ]
  assert 0.5 < sum(found) / 40 < 0.95


def test_a_judge_asks_what_the_task_teaches():
  """E0: the question about a group is a prompt of the task, whatever the order
  in which the judge names the responses.
  """
  judge = Judge(template=principle_lists.QUESTION, reads='text')
  example = PrincipleTexts().example('train', 0)
  rubric = example.meta['rubric']
  texts = dict(enumerate(('40', '71', '00', '98')))
  (asked,) = judge_questions.questions(judge, example, texts)
  shown = '\n\n'.join(
    f'[{i}]\n{texts[row]}' for i, row in enumerate(asked.rows, 1)
  )
  assert asked.text == f'{rubric}\n{shown}:'
  listed = PrincipleLists().example('train', 0).prompt
  assert re.sub(r'\d', '0', listed[2:]) == re.sub(r'\d', '0', asked.text[2:])
  # The scores come back to the samples that the names stand for.
  named = [met(rubric, texts[row]) for row in asked.rows]
  scores, unread = judge_questions.scores(
    judge, [asked], [principle_lists.written(named)], 4
  )
  assert unread == 0
  assert scores.tolist() == [met(rubric, x) for x in texts.values()]


THOUGHT = (
  '<think>1e2u1;2e0u0;3e1u1</think>'
  '{"scores":{"1":3,"2":0,"3":2},"best-to-worst":[1,3,2]}'
)


def test_thoughts_by_hand():
  """E1: of 46, 31 and 29 the first has two even digits, and two texts rise; the
  form lacks 0.05 of 1, as the thought has no 50 characters.
  """
  prompt = 'eu\n[1]\n46\n\n[2]\n31\n\n[3]\n29:'
  example = Example(prompt=prompt, answer='[3, 0, 2]', id=0)
  task = ThoughtLists(candidates=3)
  assert task.target(example) == THOUGHT
  found = task.reward(example, THOUGHT)
  assert found == {
    'agreement': 1.0,
    'outcome': 1.0,
    'form': pytest.approx(0.95, rel=1e-6),
  }
  # 0.95 / 2 and the agreement.
  total = base.combine(found, task.reward_weights)
  assert total == pytest.approx(1.475, rel=1e-6)
  assert set(prompt + THOUGHT) <= set(task.alphabet)


def test_scores_without_a_thought_have_less_form():
  """E0: with weight 0 the reward is that of PrincipleLists."""
  plain, task = PrincipleLists(candidates=3), ThoughtLists(candidates=3)
  for text in (THOUGHT, THOUGHT.partition('</think>')[2], '{"1":1}', ''):
    found = task.reward(EXAMPLE, text)
    form = found.pop('form')
    assert found == plain.reward(EXAMPLE, text)
    assert (form > 0.9) == (text == THOUGHT)


def test_a_thought_that_errs_is_followed():
  """E0: scores and ranking are those of the counts, right or wrong; prompts and
  answers are those of PrincipleLists.
  """
  task, wrong = ThoughtLists(errors=0.5), 0
  for index in range(30):
    example = task.example('train', index)
    assert example == PrincipleLists().example('train', index)
    said = task.target(example)
    counts = re.findall(r'(\d)[a-z](\d)[a-z](\d)', said.partition('</')[0])
    scores = {name: int(a) + int(b) for name, a, b in counts}
    read = json.loads(said.partition('</think>')[2])
    assert read['scores'] == scores and len(scores) == 4
    ranked = [scores[str(name)] for name in read['best-to-worst']]
    assert ranked == sorted(scores.values(), reverse=True)
    assert task.reward(example, said)['form'] == pytest.approx(0.95, rel=1e-6)
    wrong += list(scores.values()) != json.loads(example.answer)
  assert 15 < wrong < 30


def test_a_judge_reads_the_scores_after_a_thought():
  """E0: as if it had given them only."""
  judge = Judge(template=principle_lists.QUESTION, reads='text')
  example = PrincipleTexts().example('train', 0)
  (asked,) = judge_questions.questions(judge, example, {0: '46', 1: '31'})
  said = principle_lists.thought('eu', [[2, 1], [0, 0]])
  for text in (said, principle_lists.written([3, 0])):
    scores, unread = judge_questions.scores(judge, [asked], [text], 2)
    assert unread == 0
    assert [scores[row] for row in asked.rows] == [3.0, 0.0]


def test_texts_by_hand():
  task = PrincipleTexts()
  example = Example(prompt='es:', answer='', id=0, meta={'rubric': 'es'})
  for response, expected in (
    ('40', 1.0),
    ('49', 0.5),
    ('4021', 0.0),
    ('4a', 0.0),
  ):
    assert task.reward(example, response) == {'outcome': expected}
  assert len(task.target(task.example('train', 3))) == 2


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='PrincipleLists.unseen = 12'):
    PrincipleLists(unseen=12)
