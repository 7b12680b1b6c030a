"""Forms: goals, pages, potentials."""

import itertools

import pytest

from rl_jax.worlds import WebForm

NAMES = 'abcdefgh'


def played(task, example, actions):
  """The replies to the reset and to each action."""
  episode = task.make(example)
  return [episode.reset(0), *map(episode.step, actions)]


def wrong(digit):
  return str((int(digit) + 1) % 5)


def test_potentials_by_hand():
  """+.2475, +.2450, idle -.0050, back -.2525, of four fields."""
  task = WebForm(fields=4)
  example = task.example('train', 0)
  goal, first = task.pages(example)
  assert first == '----'
  actions = [f'a{goal[0]}', f'b{goal[1]}', 'x9', f'b{wrong(goal[1])}']
  replies = played(task, example, actions)
  found = [reply.rewards['potential'] for reply in replies[1:]]
  assert found == pytest.approx([0.2475, 0.2450, -0.0050, -0.2525])
  assert [r.rewards['invalid'] for r in replies[1:]] == [0, 0, 1, 0]
  asked = ''.join(itertools.chain(*zip(NAMES[:4], goal, strict=True)))
  assert replies[0].observation == f'{asked}:a-b-c-d-s>'
  assert replies[1].observation == f'a{goal[0]}b-c-d-s>'
  assert replies[3].state == replies[2].state != replies[1].state


@pytest.mark.parametrize('discount', [0.99, 0.5])
def test_potentials_telescope(discount):
  """sum_t discount^t F_t = discount^T Phi_T - Phi_0, whatever was done."""
  task = WebForm(fields=3, filled=(0.5,), discount=discount)
  example = task.example('train', 5)
  goal, first = task.pages(example)
  actions = ['b1', 'nothing', f'a{goal[0]}', f'b{goal[1]}', 'c0', 's']
  replies = played(task, example, actions)
  found = [reply.rewards['potential'] for reply in replies[1:]]
  total = sum(discount**t * x for t, x in enumerate(found))

  def phi(page):
    return sum(map(str.__eq__, page, goal)) / 3

  expected = discount ** len(actions) * phi(replies[-1].state) - phi(first)
  assert total == pytest.approx(expected)


def test_the_solution_is_right_and_nothing_else():
  task = WebForm(fields=2, values=3)
  example = task.example('test', 3)
  last = played(task, example, task.actions(example))[-1]
  assert last.done and last.rewards['outcome'] == last.rewards['end'] == 1.0
  pages = itertools.product('012', repeat=2)
  outcomes = [
    played(task, example, [f'a{a}', f'b{b}', 's'])[-1].rewards for a, b in pages
  ]
  assert sum(found['outcome'] for found in outcomes) == 1.0  # 3^-2 at random
  assert sum(found['end'] for found in outcomes) == 1 - 8
  assert set(task.actions(example)[0]) <= set(task.alphabet)


@pytest.mark.parametrize(
  'action', ['a\u00b2', 'a\u0663', 'a9', 'ab', 'a', 'x1']
)
def test_other_texts_change_nothing(action):
  """Digits of other scripts, too, and those above the values of the form."""
  task = WebForm(fields=2)
  first, reply = played(task, task.example('train', 0), [action])
  assert first.state == reply.state and reply.rewards['invalid'] == 1.0


def test_levels_of_training_forms():
  """p = 1 leaves the submission; one goal is one field; held-out is plain."""
  task = WebForm(fields=4, filled=(0.0, 1.0), goals=(1, 4))
  easy = task.example('train', 1)
  assert task.actions(easy) == ['s']
  one = task.example('train', 2)
  goal, first = task.pages(one)
  assert goal.count('-') == 3 and first == '----'
  assert len(task.actions(one)) == 2
  held_out = task.pages(task.example('validation', 1))
  assert '-' not in held_out[0] and held_out[1] == '----'
  half = WebForm(fields=4, filled=(0.75,))
  pages = [half.pages(half.example('train', n))[1] for n in range(300)]
  open_fields = [page.count('-') for page in pages]
  assert sum(open_fields) / 300 == pytest.approx(1.0, abs=0.15)
  assert open_fields.count(0) / 300 == pytest.approx(0.3164, abs=0.08)


@pytest.mark.parametrize(
  'fields', [{'filled': ()}, {'filled': (1.5,)}, {'goals': (4,)}]
)
def test_levels_are_checked(fields):
  with pytest.raises(ValueError, match=r'WebForm\.(filled|goals) = '):
    WebForm(**fields)
