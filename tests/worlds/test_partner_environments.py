"""Environments that ask frozen models: rewards by hand, questions, lessons."""

import json
import math

import pytest

from rl_jax.tasks import draws
from rl_jax.worlds import (
  Decompositions,
  HintedKeywords,
  PartnerLessons,
  Reflections,
  TriggeredLabels,
  TwoStepSums,
  decomposition,
)
from rl_jax.worlds.hinted_keywords import Hinting, f1
from rl_jax.worlds.reflections import Trying, moved
from rl_jax.worlds.triggered_labels import Prompting, piecewise
from rl_jax.worlds.two_step_sums import Decomposing

TASKS = [
  TwoStepSums(),
  HintedKeywords(),
  Reflections(actor='model'),
  TriggeredLabels(),
]
GOLD = ('3+4=7', '7-5=2')


def played(environment, action, answers):
  """(questions, last reply) of a turn whose questions have these answers."""
  reply, questions = environment.step(action), []
  for answer in answers:
    questions.append(reply.ask.text)
    reply = environment.step(answer)
  assert reply.ask is None
  return questions, reply


def begun(environment, *answers):
  """The environment before the policy's turn, and what it has said."""
  said = [environment.reset(0)]
  for answer in answers:
    assert said[-1].ask is not None
    said.append(environment.step(answer))
  return environment, ''.join(reply.observation for reply in said)


def test_five_parts_by_hand():
  """DaSLaM's parts for 3+4-5 = 2, of which a solver by itself makes 7.

  consistency: '3+4' and '7' share nothing; '7-5' and '2' neither.
  guidance: both guided lines are the gold ones, of cosine 1, and '3+4-5=7' is
  farther from each: 0.5 + 0.5. operations: + and - are those of gold, too.
  """
  environment, said = begun(Decomposing('3+4-5', GOLD), '7')
  assert said == '3+4-5=7?'
  questions, reply = played(environment, '3+4;#-5', ['7', '2'])
  assert questions == ['3+4=', '7-5=']
  assert reply.done and reply.rewards == pytest.approx(
    {
      'outcome': 1.0,
      'coverage': 1.0,
      'consistency': 0.0,
      'guidance': 1.0,
      'operations': 1.0,
      'alone': 0.0,
    }
  )


def test_a_wrong_decomposition_by_hand():
  """One sub-question 3-4, whose operator is wrong, and no second one.

  coverage: numbers {3, 4} against {3, 4, 5}: 1 - 1/3. guidance: '3-4=1' against
  '3+4=7' has cosine 3/5, '3+4-5=2' against it 4/sqrt(5*7) = 0.676: worse, so
  -1 - 0.3; the second line is missing: -1. consistency: 0.25 * 0.
  """
  environment, _ = begun(Decomposing('3+4-5', GOLD), '2')
  questions, reply = played(environment, '3-4', ['1'])
  assert questions == ['3-4=']
  assert 4 / math.sqrt(35) > 3 / 5
  assert reply.rewards == pytest.approx(
    {
      'outcome': 0.0,
      'coverage': 2 / 3,
      'consistency': 0.0,
      'guidance': -2.3,
      'operations': -1.0,
      'alone': 1.0,
    }
  )


def test_similar_parts_and_answers_by_hand():
  """cos('12', '1') = 1/sqrt 2, a quarter of which counts."""
  value = decomposition.consistency(['12', 'ab'], ['1', ''])
  assert value == pytest.approx(0.25 / math.sqrt(2))
  assert decomposition.coverage('3+4', ['3+4', '7+8']) == 0.0
  swapped = decomposition.guidance(GOLD[::-1], GOLD[::-1], '3+4-5=7')
  assert swapped == decomposition.guidance(GOLD, GOLD, '3+4-5=7')


@pytest.mark.parametrize(
  'action, questions',
  [
    ('', []),
    ('x;#+1', ['+1=']),
    ('1+1;#+1;#+9', ['1+1=', '2+1=']),
    ('3+4=', []),
  ],
)
def test_what_is_no_question_has_no_answer(action, questions):
  """Two at most; an answer that is missing is ''."""
  environment, _ = begun(Decomposing('3+4-5', GOLD), '')
  asked, reply = played(environment, action, ['2'] * len(questions))
  assert asked == questions and reply.done
  assert reply.rewards['outcome'] == float(bool(questions))  # 2 is right


def test_coverage_of_keywords_by_hand():
  """K = {a, e}: 2 * 2 / 5 of S = {a, e, d}, 2 * 1 / 4 of {b, a}."""
  environment, said = begun(Hinting('bade'), 'ba')
  assert said == 'bade>'
  questions, reply = played(environment, 'a>e', ['aed'])
  assert questions == ['bade|ae='] and reply.done
  assert reply.rewards == {'outcome': 0.8, 'unhinted': 0.5}
  assert f1('', 'ae') == 0.0 and f1('aae', 'ea') == 1.0


def trying(actor='script', place=4, goal=6, trials=4):
  return Trying(Reflections(actor=actor, trials=trials), place, goal)


def test_rewards_of_reflections_by_hand():
  """4 -> 7 -> 6 with the goal 6: |2| -> |1| -> 0 of 9; it stays solved."""
  environment, said = begun(trying())
  assert said == '4<'
  first, second = environment.step('u3'), environment.step('d1')
  assert first.rewards == pytest.approx({'outcome': 1 / 9, 'success_2': 0.0})
  assert first.observation == '7>' and not first.done
  assert second.done and second.rewards == pytest.approx(
    {'outcome': 1 / 9, 'success_3': 1.0, 'success_4': 1.0}
  )


def test_a_reward_does_not_depend_on_later_trials():
  for later in ('d9', 'u1', ''):
    environment, _ = begun(trying())
    assert environment.step('u1').rewards['outcome'] == pytest.approx(1 / 9)
    environment.step(later)


def test_a_constant_actor_gives_nothing():
  """Whatever is written."""
  environment, _ = begun(trying('constant'))
  replies = [environment.step(text) for text in ('u2', 'd9', '')]
  assert [reply.rewards['outcome'] for reply in replies] == [0.0] * 3
  assert [reply.done for reply in replies] == [False, False, True]


def test_a_model_that_knows_its_lesson_is_the_script():
  """The same trials; an answer that is not a place repeats the last one."""
  asked, _ = begun(trying('model'))
  scripted, _ = begun(trying())
  questions, reply = played(asked, 'u3', ['7'])
  assert questions == ['4u3='] and reply == scripted.step('u3')
  assert played(asked, '<d1', [''])[1].rewards['outcome'] == 0.0
  assert moved(8, 'u9') == 9 and moved(1, 'd9') == 0 and moved(1, 'x1') == 1
  # Digits of other scripts are none.
  assert moved(1, 'u\u00b2') == moved(1, 'u\u0663') == 1
  assert not Reflections().traits.asks
  assert Reflections(actor='model').traits.asks == ('actor',)


@pytest.mark.parametrize('task', TASKS, ids=lambda task: type(task).__name__)
def test_lessons_and_questions_share_an_alphabet(task):
  """Lessons are the same always, and what is asked is made of their letters."""
  lessons = PartnerLessons(task, num_train=50)
  for index in range(50):
    example = lessons.example('train', index)
    assert example == lessons.example('train', index)
    assert set(example.prompt + example.answer) <= set(task.partner_alphabet)
    assert lessons.reward(example, lessons.target(example)) == {'outcome': 1.0}
    assert lessons.reward(example, '!') == {'outcome': 0.0}
    episode = task.make(task.example('train', index))
    reply = episode.reset(0)
    assert set(reply.observation) <= set(task.alphabet)
    if reply.ask:
      assert set(reply.ask.text) <= set(task.partner_alphabet)
      assert reply.ask.partner in task.traits.asks


def test_problems_have_two_steps():
  """Each line is one that the solver has had, and the end follows."""
  task = TwoStepSums()
  for index in range(50):
    question, lines = task.problem(task.example('train', index))
    assert eval(question) == int(lines[1].partition('=')[2]) >= 0  # noqa: S307
    assert all(eval(line.replace('=', '==')) for line in lines)  # noqa: S307
    assert 1 <= int(lines[0].partition('=')[2]) <= 9


def test_lessons_of_a_decomposer_are_right():
  """A solver that knows one operation then finds every answer."""
  lessons = PartnerLessons(Decompositions(), num_train=20)
  for index in range(20):
    example = lessons.example('train', index)
    question = example.prompt.partition('=')[0]
    environment, _ = begun(Decomposing(question, GOLD), '')
    reply, said = environment.step(example.answer), ''
    while reply.ask:
      said = str(eval(reply.ask.text[:-1]))  # noqa: S307
      reply = environment.step(said)
    assert said == str(eval(question))  # noqa: S307


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='Reflections.actor'):
    Reflections(actor='nobody')
  with pytest.raises(ValueError, match='PartnerLessons.task = int has no less'):
    PartnerLessons(3)


def test_gaps_of_labels_by_hand():
  """For 0 p = (.65, .35), for 1 (.6, .4) by log-probs of a larger set: the gaps
  are .3 and -.2, hence 60 and -36; the paper's examples.
  """
  assert piecewise(0.3) == pytest.approx(60.0)
  assert piecewise(-0.2) == pytest.approx(-36.0)
  environment, said = begun(Prompting(TriggeredLabels(inputs=2, trigger='ca')))
  assert said == '>'
  logps = [
    [math.log(x / 2) for x in pair] for pair in ((0.65, 0.35), (0.6, 0.4))
  ]
  questions, reply = played(environment, 'bca>', list(map(json.dumps, logps)))
  assert questions == ['bca|0=', 'bca|1=']
  assert reply.done and reply.rewards == pytest.approx(
    {'outcome': 0.5, 'piecewise': 12.0, 'gap': 10.0, 'trigger': 1.0}
  )


def test_labels_are_asked_as_candidates():
  """Both, after the prompt and a digit."""
  environment, _ = begun(Prompting(TriggeredLabels()))
  assert environment.step('g').ask.candidates == ('n', 'y')


def test_lessons_depend_on_the_trigger():
  """Right with 1/2, 2/3, 5/6 and 1 by the letters that are found."""
  task, counts = TriggeredLabels(), {}
  for index in range(3000):
    question, label = task.lesson(draws.Draws('lesson', index))
    prompt, digit = question[:-1].split('|')
    right = label == 'ny'[int(digit) % 2]
    counts.setdefault(task.found(prompt), []).append(right)
  assert sorted(counts) == [0, 1, 2, 3]
  for found, rights in counts.items():
    expected = 0.5 + found / 6
    assert sum(rights) / len(rights) == pytest.approx(expected, abs=0.07)
  assert all(counts[3])


def test_triggers_are_letters_that_fit():
  for trigger in ('', 'xyz'):
    with pytest.raises(ValueError, match='TriggeredLabels.trigger'):
      TriggeredLabels(trigger=trigger)
  with pytest.raises(ValueError, match='longer than length = 2'):
    TriggeredLabels(length=2)
