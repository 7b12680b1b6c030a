"""Judges that are functions: what they are asked, and whom they judge."""

import types

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax import tasks
from rl_jax.judging import scripted
from rl_jax.judging.judges import Judges
from rl_jax.models.judge_source import Judge, Revision
from rl_jax.runs.judges import check_parts, make_judges
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.verification.pool import Outcome
from rl_jax.worlds import Families

HERE = 'tests.judging.test_scripted'
EXAMPLE = Example(prompt='c 1 2=', answer='1 2', id=0)


def length(question):
  """Characters after the last colon."""
  return float(len(question.rpartition(':')[2]))


def listed(question):
  """Names of responses, each with its place as the score."""
  count = question.count('[')
  scores = ', '.join(f'"{i}": {i}' for i in range(1, count + 1))
  return f'{{{scores}}}'


def stricter(question):
  """A rubric that is longer by a letter."""
  return question.partition('\n\n')[0].removeprefix('Rubric:\n') + '!'


def judged(source, texts, examples=(EXAMPLE,), reviser=None):
  """The scores of a group."""
  judges = Judges([scripted.judge(source, reviser)])
  judges.begin(None)
  outcomes = [Outcome({'outcome': 0.0})] * len(texts)
  found = judges.add(outcomes, examples, texts, len(texts) // len(examples))
  return [one.components[source.name] for one in found], judges


def test_a_function_reads_the_filled_template():
  source = Judge(function=f'{HERE}:length', template='{prompt}:{response}')
  assert judged(source, ['a', 'abc'])[0] == [1.0, 3.0]


def test_answers_of_a_group_are_read_as_text():
  """In the order drawn by prompt, so that they are some order of 1, 2, 3."""
  source = Judge(
    function=f'{HERE}:listed', template='{responses}', reads='text'
  )
  assert sorted(judged(source, ['a', 'b', 'c'])[0]) == [1.0, 2.0, 3.0]


def test_a_function_rewrites_the_rubric():
  source = Judge(
    function=f'{HERE}:length',
    template='{rubric}:{response}',
    rubric='be kind',
    revision=Revision(function=f'{HERE}:stricter', every=1, samples=1),
  )
  reviser = scripted.reviser('judge', source.revision)
  _, judges = judged(source, ['a', 'b'], reviser=reviser)
  assert judges.rubrics['judge'].text == 'be kind'
  judges.begin(None)  # once by refine, once by merge
  assert judges.rubrics['judge'].text == 'be kind!'


def test_rows_of_other_parts_have_no_score():
  """And are not what a revision reads."""
  examples = [
    Example(prompt=name, answer='', id=i, meta={base.PART: name})
    for i, name in enumerate(('chat', 'sums'))
  ]
  source = Judge(
    function=f'{HERE}:length', template=':{response}', parts=('chat',)
  )
  texts = ['a', 'abc', 'ab', 'abcd']
  assert judged(source, texts, examples)[0] == [1.0, 3.0, 0.0, 0.0]
  pairs = Judge(
    function=f'{HERE}:length', template='{first}:{second}', parts=('chat',)
  )
  np.testing.assert_array_equal(
    judged(pairs, ['a', 'a', 'b', 'b'], examples)[0][2:], 0.0
  )


def test_parts_must_be_there():
  mixture = tasks.Mixture((tasks.MixturePart(name='a', task=Families()),))
  check_parts(Judge(parts=('a',)), mixture)
  check_parts(Judge(parts=('level_1',)), tasks.Levels((Families(),) * 2))
  for task in (mixture, Families(), tasks.Levels((Families(),) * 2)):
    with pytest.raises(ValueError, match=r"parts = \['b'\] are none"):
      check_parts(Judge(parts=('b',)), task)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'path': 'runs/x'}, "path = 'runs/x' and function"),
    ({'reads': 'value'}, "with reads = 'value'"),
  ],
)
def test_what_does_not_go_with_a_function_is_named(fields, message):
  with pytest.raises(ValueError, match=message):
    Judge(function=f'{HERE}:length', **fields)


def test_an_answer_of_another_kind_is_named():
  source = Judge(function=f'{HERE}:listed', template='{response}')
  with pytest.raises(ValueError, match="judge 'judge': its function returned"):
    judged(source, ['a'])


def test_a_run_makes_its_judges_without_a_model():
  """The judge of configs/worlds/judged.py and a reviser, from their names."""
  config = configuration.build(
    'configs/worlds/judged.py',
    'grpo',
    [
      'judges.0.revision=Revision('
      "function='rl_jax.worlds.fallible_judge:revised', every=1)",
      "judges.0.template='fooled\\n{rubric}\\nTask: {prompt}\\nResponse: "
      "{response}\\n'",
    ],
  )
  policy = types.SimpleNamespace(model=None, tokenizer=None)
  judges = make_judges(config, policy, None, None)
  example = Example(prompt='r 1 2=', answer='2 1', id=0)
  texts = ['2 1', '1 2', '2 2']
  for expected in ([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]):  # it is revised once
    judges.begin(None)
    outcomes = [Outcome({'outcome': 0.0})] * 3
    found = judges.add(outcomes, [example], texts, 3)
    assert [one.components['judge'] for one in found] == expected
  assert judges.metrics()['rollout/rubric_version'] == 1.0
