"""Two answers, of which one is right."""

from rl_jax.models.judge_source import filled
from rl_jax.worlds import Families, RankedFamilies, ranked_families


def test_the_right_answer_is_where_the_label_says():
  task, plain = RankedFamilies(), Families()
  numbers = []
  for index in range(60):
    example = task.example('train', index)
    asked = plain.example('train', index)
    texts = example.prompt.removeprefix(asked.prompt)[:-1].split('?')
    place = int(example.answer) - 1
    assert texts[place] == asked.answer != texts[1 - place]
    slots = dict(zip(('first', 'second'), texts, strict=True))
    question = filled(
      ranked_families.TEMPLATE, {'prompt': asked.prompt} | slots
    )
    assert question == example.prompt
    assert set(example.prompt + example.answer) <= set(task.alphabet)
    numbers.append(place)
  assert 15 < sum(numbers) < 45


def test_tau_by_hand():
  """1 for the true order, -1 for the reverse and for what cannot be read."""
  task = RankedFamilies()
  example = task.example('validation', 0)
  other = '1' if example.answer == '2' else '2'
  found = [task.reward(example, x) for x in (example.answer, other, '', '12')]
  assert [x['tau'] for x in found] == [1.0, -1.0, -1.0, -1.0]
  assert [x['outcome'] for x in found] == [1.0, 0.0, 0.0, 0.0]
