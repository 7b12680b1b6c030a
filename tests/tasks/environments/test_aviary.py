"""Sums of Aviary with a calculator, through the adapter."""

import os

import pytest

from configs import aviary_calculator, recorded_aviary_calculator
from configs.environments.word_sums import CALL, CLOSE, SUBMIT, WordSums
from experiments.flags import configuration
from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.tasks import Aviary, answers

pytestmark = pytest.mark.usefixtures('packages')


def make_task(module=aviary_calculator, **options):
  config = module.get_config(configuration.load_method('sft'))
  return configuration.changed(config, [f'task.options={options}']).task


def call(expression):
  return f'{CALL}{expression}{CLOSE}'


def submit(answer):
  return f'{SUBMIT}{answer}{CLOSE}'


def played(task, *actions):
  """(the first observation, replies) of the first training problem."""
  episode = task.make(task.example('train', 0))
  first = episode.reset(0).observation
  replies = [episode.step(action) for action in actions]
  episode.close()
  return first, replies


def total(replies, name):
  return sum(reply.rewards[name] for reply in replies)


def test_problems_are_each_one_once():
  """One digit: 9 x 9 of three kinds, whatever the order."""
  sums = WordSums(digits=1)
  problems = [sums.problem(place) for place in range(len(sums))]
  assert len(sums) == 243 == len({one.expression for one in problems})
  for question, expression, answer in problems:
    assert str(eval(expression)) == answer
    a, word, b = question.removeprefix('What is ').rstrip('?').split()
    sign = {'plus': '+', 'minus': '-', 'times': '*'}[word]
    assert f'{a}{sign}{b}' == expression
  assert len(WordSums()) == 3 * 90 * 90


def test_a_call_and_an_answer():
  """The result is observed; the right answer earns 1 and ends the episode."""
  task = make_task()
  question, expression, answer = WordSums().problem(0)
  first, (told, last) = played(task, call(expression), submit(answer))
  assert first == question + '\n'
  assert told.observation == f'<tool_response>\n{answer}\n</tool_response>\n'
  assert told.calls == 1 and not told.done
  assert last.done
  assert total((told, last), 'reward') == total((told, last), 'outcome') == 1.0


def test_wrong_answers_and_expressions():
  """0 and -1, and both are the end; a turn without a call is not."""
  task = make_task()
  for action, reward, done in (
    (submit('x'), 0.0, True),
    (call('2+'), -1.0, True),
    ('Hm.', 0.0, False),
    ('<tool_call>{', 0.0, False),
  ):
    _, (reply,) = played(task, action)
    assert (reply.rewards['reward'], reply.done) == (reward, done)
    assert reply.rewards['outcome'] == 0.0


def test_without_the_calculator():
  """It is not a tool of this world; only the answer counts."""
  task = make_task(tools='submit')
  answer = WordSums().problem(0).answer
  _, (told, last) = played(task, call('2+3'), submit(answer))
  assert 'Invalid tool call: calculator' in told.observation
  assert last.rewards['outcome'] == 1.0 and last.done


def test_equal_answers_have_one_cluster():
  """However they were found; -1 without one, and no such component unasked."""
  task = make_task()

  def cluster(*actions):
    return total(played(task, *actions)[1], 'cluster_id')

  seven = answers.cluster_id('7')
  assert cluster(submit('7')) == cluster(call('3+4'), submit('7.0')) == seven
  assert cluster('Hm.', submit('8')) == answers.cluster_id('8') != seven
  assert cluster(call('3+4')) == cluster('<tool_call>{', 'Hm.') == -1.0
  plain = Aviary(dataset=task.dataset, num_train=10)
  _, (reply,) = played(plain, submit('7'))
  assert 'cluster_id' not in reply.rewards


def test_tools_are_described_unless_they_are_known():
  fields = {'dataset': make_task().dataset, 'num_train': 10}
  question = WordSums().problem(0).question + '\n'
  assert played(Aviary(**fields, shown='none'))[0] == question
  described, _ = played(Aviary(**fields))
  assert described.endswith(question) and '<tools>' in described


def test_episodes_share_a_loop():
  """A loop for each would open files: some hundred episodes play at a time."""
  task = make_task()
  begun = [task.make(task.example('train', 0)) for _ in range(2)]
  [one.reset(0) for one in begun]
  count = len(os.listdir('/proc/self/fd'))
  more = [task.make(task.example('train', 1)) for _ in range(20)]
  [one.reset(0) for one in more]
  assert len(os.listdir('/proc/self/fd')) == count
  [one.close() for one in begun + more]


def test_recorded_episodes():
  """Made of the task's pieces; shares of calls and right answers as given."""
  task = make_task(recorded_aviary_calculator)
  tokenizer = PieceTokenizer(task.alphabet)
  right = calls = 0
  for index in range(200):
    example = task.example('train', index)
    (logged,) = task.recorded(example)
    episode = task.make(example)
    assert len(tokenizer.encode(episode.reset(0).observation)) == 7
    for action, told in logged.turns:
      reply = episode.step(action)
      assert told in (reply.observation, '')
      assert len(tokenizer.encode(action)) < 9
      assert len(tokenizer.encode(told)) <= 7
    assert reply.done
    right += reply.rewards['outcome']
    calls += len(logged.turns) - 1
  share = 1 - task.by_hand
  assert calls / 200 == pytest.approx(share, abs=0.1)
  # Half by hand; of calls also a third of the careless ones, by chance.
  expected = 0.5 * task.by_hand + share * (1 - task.careless * 2 / 3)
  assert right / 200 == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
  ('options', 'text'),
  [({'tools': 'none'}, 'tools = '), ({'digits': 4}, 'digits = 4 is outside')],
)
def test_bad_options_are_named(options, text):
  with pytest.raises(ValueError, match=text):
    WordSums(**options)


def test_a_file_of_the_users(tmp_path):
  """A user names it by its path."""
  path = tmp_path / 'my_sums.py'
  path.write_text(
    'from configs.environments import word_sums\n\n'
    'class MySums(word_sums.WordSums):\n  """The same."""\n'
  )
  task = Aviary(dataset=f'{path}:MySums', num_train=10, shown='none')
  assert played(task)[0].startswith('What is ')
