"""Episodes in workers: failures cost one row, lost ones are repeated."""

import dataclasses
import os
import signal

import numpy as np
import pytest

from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.players import Episode
from rl_jax.runtime.writer import sole_writer
from rl_jax.tasks.environments.base import Reply, seed_of
from rl_jax.verification import messages, sandbox, session_host
from rl_jax.verification.sessions import Request, SessionPool


class Played:
  """Episodes of one round, which continue with every call of `step`."""

  def __init__(self, pool, task, count, number=0):
    self.pool = pool
    examples = [task.example('train', 0)] * count
    self.requests = [
      Request((number, row), e, seed_of(e)) for row, e in enumerate(examples)
    ]
    self.said = [[] for _ in examples]
    self.answers = pool.ask(self.requests)
    self._note(range(count))

  def _note(self, rows):
    for row, answer in zip(rows, self.answers, strict=True):
      self.said[row].append(answer.reply)

  def step(self, actions):
    """actions: text by row; the others rest."""
    rows = list(actions)
    for row in rows:
      r, last = self.requests[row], self.said[row][-1]
      self.requests[row] = Request(
        r.episode,
        r.example,
        r.seed,
        actions=(*r.actions, actions[row]),
        before=(*r.before, session_host.fingerprint(last)),
      )
    self.answers = self.pool.ask([self.requests[row] for row in rows])
    self._note(rows)
    return [a.kind for a in self.answers]

  def texts(self, row):
    return [reply['observation'] for reply in self.said[row]]


def play(pool, task, turns=3, rows=4, number=0):
  """All that is said to the same actions in every row."""
  played = Played(pool, task, rows, number)
  for turn in range(turns):
    kinds = played.step(dict.fromkeys(range(rows), f'a{turn}'))
    assert kinds == ['ok'] * rows
  return [played.texts(row) for row in range(rows)]


@pytest.mark.parametrize('workers', [0, 1, 3])
def test_episodes_are_functions_of_seed_and_actions(bad, workers):
  """Rows that share a process share no state of the global generators."""
  task = bad.Misbehaving()
  with SessionPool(task, workers) as pool:
    first = play(pool, task)
    assert first == [first[0]] * 4
    assert len(set(first[0])) == 4
    assert play(pool, task, number=1) == first


def test_each_failure_costs_one_row(bad):
  """Two workers for all; a row without failure continues in each of them."""
  task = bad.Misbehaving()
  cases = [
    ('hang', 'timeout', 'killed after 1.0'),
    ('raise', 'error', 'a bug'),
    ('leave', 'error', 'SystemExit'),
    ('exit', 'died', 'ended'),
    ('abort', 'died', 'ended'),
    ('flood', 'invalid', '10000000 characters'),
    ('nothing', 'invalid', 'NoneType, not a Reply'),
    ('text', 'invalid', 'str, not a Reply'),
    ('bytes', 'invalid', 'bytes, not text'),
    ('nan', 'invalid', "'outcome' is nan"),
    ('reward', 'invalid', 'float'),
    ('flag', 'invalid', "done = 'no'"),
    ('object', 'invalid', 'info is not JSON'),
    ('calls', 'invalid', 'calls = -1'),
    ('many', 'invalid', 'calls = 1099511627776'),
    ('huge', 'invalid', "'outcome' is -1e+300, not in [-1e+12, 1e+12]"),
    ('endless', 'invalid', "'duration' is 1e+300"),
    ('fork', 'ok', ''),
    ('print', 'ok', ''),
    ('good', 'ok', ''),
    ('good', 'ok', ''),
  ]
  rows = range(len(cases))
  with SessionPool(task, 2, 1.0) as pool:
    played = Played(pool, task, len(cases))
    played.step(dict.fromkeys(rows, 'one'))
    played.step({row: cases[row][0] for row in rows})
    for (_, kind, words), answer in zip(cases, played.answers, strict=True):
      assert answer.kind == kind and words in answer.detail
      assert (answer.reply is None) == (kind != 'ok')
    good = [row for row in rows if cases[row][0] == 'good']
    assert played.step(dict.fromkeys(good, 'three')) == ['ok', 'ok']
    texts = [played.texts(row) for row in good]
    counts = pool.counts()
  assert texts[0] == texts[1] and texts[0][-1].startswith('3:three:')
  assert counts['timeout'] == 1 and counts['invalid'] == 12
  with SessionPool(task, 0) as pool:  # never interrupted
    whole = Played(pool, task, 1)
    for action in ('one', 'good', 'three'):
      whole.step({0: action})
  assert texts[0] == whole.texts(0)


@pytest.mark.parametrize(
  ('end', 'how'),
  [('hang', 'timeout: killed after 2.0'), ('exit', 'died: the worker')],
)
def test_a_close_that_fails_costs_no_row(bad, caplog, end, how):
  """Neither those that come next in its process, nor the one it ends."""
  task = bad.Clings()
  with SessionPool(task, 1, 2.0) as pool:
    expected = play(pool, task, rows=3)
    played = Played(pool, task, 3, number=1)
    assert played.step({0: 'good', 1: end, 2: 'good'}) == ['ok'] * 3
    assert play(pool, task, rows=3, number=2) == expected
    counts = pool.counts()
    assert (counts['close'], counts['timeout'], counts['died']) == (1, 0, 0)
    assert (
      "'close' (later ones are only counted), row 1 of round 1" in caplog.text
    )
    assert how in caplog.text
    played = Played(pool, task, 3, number=3)
    assert played.step({0: 'good', 1: end, 2: 'good'}) == ['ok'] * 3
    assert played.step({0: 'b', 1: 'done', 2: 'b'}) == ['ok'] * 3
    assert played.answers[1].reply['done']
    assert played.step({0: 'c', 2: 'c'}) == ['ok', 'ok']
    assert played.texts(0) == played.texts(2)
    counts = pool.counts()
    assert (counts['close'], counts['timeout'], counts['died']) == (2, 0, 0)


@pytest.mark.parametrize('deterministic', [True, False])
def test_calls_that_wait_run_side_by_side(bad, tmp_path, deterministic):
  """By default; E0: the texts are those of one process after the other."""
  rows, task = 24, bad.Meets(deterministic=deterministic)
  with SessionPool(task, None, 60.0) as pool:
    played = Played(pool, task, rows)
    kinds = played.step(dict.fromkeys(range(rows), f'meet {tmp_path} {rows}'))
    assert kinds == ['ok'] * rows
    assert len(pool.worker_pids()) >= rows
  with SessionPool(task, 0) as pool:
    alone = Played(pool, task, 1)
    alone.step({0: f'meet {tmp_path} 1'})
  assert [played.texts(row) for row in range(rows)] == [alone.texts(0)] * rows


def test_calls_that_compute_share_the_processors(bad):
  """More processes would only take each other's time."""
  rows, task = 40, bad.Meets()
  with SessionPool(task, None, 60.0) as pool:
    played = Played(pool, task, rows)
    played.step(dict.fromkeys(range(rows), 'compute 0.05'))
    assert len(pool.worker_pids()) < rows / 2


def test_a_limit_holds_for_calls_that_wait(bad, tmp_path):
  """Two meet; of three the first two never see the third one."""
  task = bad.Meets()
  with SessionPool(task, None, 2.0, limits={'step': 2}) as pool:
    played = Played(pool, task, 4)
    action = f'meet {tmp_path} 2'
    assert played.step(dict.fromkeys(range(4), action)) == ['ok'] * 4
    played = Played(pool, task, 3, number=1)
    action = f'meet {tmp_path} 3'
    kinds = played.step(dict.fromkeys(range(3), action))
    assert kinds[:2] == ['timeout'] * 2


def test_a_hang_makes_no_other_episode_wait(bad, tmp_path):
  """They leave its process, with what they said before; E0."""
  task = bad.Meets()
  with SessionPool(task, None, 60.0) as pool:
    expected = play(pool, task, rows=1)[0]
    played = Played(pool, task, 6, number=1)
    for row, request in enumerate(played.requests):
      step = dataclasses.replace(
        request,
        actions=(f'meet {tmp_path} 9' if row == 0 else 'a0',),
        before=(session_host.fingerprint(played.said[row][-1]),),
      )
      pool.submit(step, (row,))
    made = []
    while len(made) < 5:
      made += pool.poll(None)
    texts = {one.request.episode[1]: one.answer.reply for one in made}
    assert sorted(texts) == [1, 2, 3, 4, 5]
    assert {x['observation'] for x in texts.values()} == {expected[1]}


def _killed(pool):
  for pid in pool.worker_pids():
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize('deterministic', [True, False])
def test_a_stateless_step_is_repeated_by_no_process(
  bad, tmp_path, deterministic
):
  """Each action reaches the tool once, also where its process has ended."""
  notes = tmp_path / 'notes'
  task = bad.Stateless(notes=str(notes), deterministic=deterministic)
  with SessionPool(task, 2) as pool:
    played = Played(pool, task, 2)
    for turn in range(4):
      kinds = played.step({row: f'{row}/{turn}' for row in range(2)})
      assert kinds == ['ok'] * 2
      _killed(pool)
  lines = notes.read_text().splitlines()
  assert sorted(lines) == [f'{r}/{t}' for r in range(2) for t in range(4)]
  how = [reply['info'].get('how') for reply in played.said[0]]
  assert how == [None, 'reset', 'continued', 'continued', 'continued']


@pytest.mark.parametrize(
  ('workers', 'count'), [('process', 3), ('thread', 1), ('thread', 2)]
)
def test_a_slow_call_of_a_pure_tool_is_made_once_more(
  bad, tmp_path, workers, count
):
  """The second one answers; the first one is never waited for.

  The episode knows of one of them only, also where both are of one process.
  """
  task = bad.Stateless(pure=True, workers=workers)
  with SessionPool(task, count, 300.0) as pool:
    played = Played(pool, task, 2)
    for turn in range(6):
      assert played.step({0: f'a{turn}', 1: f'b{turn}'}) == ['ok'] * 2
    action = f'slow {tmp_path}/flag 200'
    assert played.step({0: action, 1: 'b'}) == ['ok'] * 2
    assert played.texts(0)[-1] == 'slow\n'
    assert pool.made_again()['hedged'] >= 1
    for turn in range(8, 10):
      assert played.step({0: 'c', 1: 'c'}) == ['ok'] * 2
      steps = [one[-1]['info']['steps'] for one in played.said[:2]]
      assert steps == [turn, turn]
    assert pool.counts()['unequal'] == 0


@pytest.mark.parametrize('workers', ['process', 'thread'])
def test_a_second_call_keeps_the_limit_of_its_kind(bad, tmp_path, workers):
  """A server that serves one call at a time is not asked twice."""
  task = bad.Stateless(pure=True, workers=workers)
  with SessionPool(task, 3, 300.0, limits={'step': 1}) as pool:
    played = Played(pool, task, 1)
    for turn in range(10):
      assert played.step({0: f'a{turn}'}) == ['ok']
    before = pool.made_again()['hedged']
    assert played.step({0: f'slow {tmp_path}/flag 2'}) == ['ok']
    assert pool.made_again()['hedged'] == before == 0


def test_a_tool_that_is_not_pure_is_named(bad, caplog):
  """Its two answers differ: the first counts, and the log says which."""
  task = bad.Stateless(pure=True)
  with SessionPool(task, 3, 300.0) as pool:
    played = Played(pool, task, 1)
    for turn in range(10):
      played.step({0: f'a{turn}'})
    assert played.step({0: 'own x 0.5'}) == ['ok']
    other = Played(pool, task, 1, number=1)
    while not pool.counts()['unequal']:
      assert other.step({0: 'own x 0.1'}) == ['ok']
  assert 'the trait `pure` of Stateless is not true' in caplog.text
  assert "two answers to 'own x 0." in caplog.text


def test_a_timeout_that_the_policy_reads(bad):
  """A stateless tool: the episode continues after it."""
  task = bad.Stateless(timeout_text='no answer\n')
  episode = Episode(
    (0, 0), task.example('train', 0), timeout_text=task.traits.timeout_text
  )
  with SessionPool(task, 1, 1.0) as pool:
    for action in (None, 'one', 'hang', 'two'):
      if action is not None:
        episode.actions.append(action)
        episode.roles.append(0)
      (answer,) = pool.ask([episode.request()])
      episode.hear(answer)
  texts = [reply['observation'] for reply in episode.said]
  assert texts == ['begins\n', 'one\n', 'no answer\n', 'two\n']
  assert episode.failure is None and episode.lost is None


@pytest.mark.slow
def test_a_thousand_hangs_leave_nothing_behind(bad):
  """Neither processes nor open files."""
  task = bad.Misbehaving()
  before = len(os.listdir('/proc/self/fd'))
  with SessionPool(task, 32, 0.2) as pool:
    played = Played(pool, task, 1000)
    assert set(played.step(dict.fromkeys(range(1000), 'hang'))) == {'timeout'}
    nursery = pool._crew._process.pid
    with open(f'/proc/{nursery}/task/{nursery}/children') as file:
      assert len(file.read().split()) == 32
  assert len(os.listdir('/proc/self/fd')) == before


def test_killed_workers_are_replaced_and_their_episodes_repeated(bad):
  """Kill -9 between any two turns; E0."""
  task = bad.Misbehaving()
  with SessionPool(task, 2) as pool:
    expected = play(pool, task)
    played = Played(pool, task, 4, number=1)
    for turn in range(3):
      for pid in pool.worker_pids():
        os.kill(pid, signal.SIGKILL)
      played.step(dict.fromkeys(range(4), f'a{turn}'))
  assert [played.texts(row) for row in range(4)] == expected


def test_an_episode_that_repeats_differently_is_counted(bad):
  task = bad.Misbehaving()
  with SessionPool(task, 1) as pool:
    played = Played(pool, task, 2)
    played.step({0: 'unsteady', 1: 'good'})
    os.kill(pool.worker_pids()[0], signal.SIGKILL)
    assert played.step({0: 'good', 1: 'good'}) == ['mismatch', 'ok']
    assert pool.counts()['mismatch'] == 1
  assert 'reply 1 differs' in played.answers[0].detail


def test_what_is_not_deterministic_is_never_repeated(bad, tmp_path):
  """A killed worker and a run that continues cost the episodes they break."""
  task = bad.Unrepeatable()
  with SessionPool(task, 1) as pool:
    played = Played(pool, task, 2)
    assert played.step({0: 'a', 1: 'a'}) == ['ok', 'ok']
    os.kill(pool.worker_pids()[0], signal.SIGKILL)
    assert played.step({0: 'b', 1: 'b'}) == ['mismatch', 'mismatch']
    assert 'deterministic = False' in played.answers[0].detail
    assert pool.counts()['mismatch'] == 2
    assert Played(pool, task, 1, number=1).step({0: 'a'}) == ['ok']
  for kinds in (['ok'], ['mismatch']):  # the second run has no process of it
    pool = NumberedCalls(
      SessionPool(task, 1), tmp_path / 'journal', writer=sole_writer()
    )
    played = Played(pool, task, 1)
    assert played.step({0: 'a'}) == ['ok']
    if kinds == ['mismatch']:
      assert played.step({0: 'b'}) == kinds
    pool.close()


def test_what_an_episode_starts_ends_with_it_unless_it_is_kept(bad):
  """A server lives on from round to round, as long as its worker."""

  def alive(pid):
    return os.path.exists(f'/proc/{pid}')

  with SessionPool(bad.Leaves(), 1) as pool:
    said = []
    for number in range(3):
      played = Played(pool, bad.Leaves(), 2, number)
      assert played.step({0: 'a', 1: 'done'}) == ['ok', 'ok']
      assert played.step({0: 'done'}) == ['ok']
      said += [text.split() for row in (0, 1) for text in played.texts(row)[1:]]
    servers, others = ({int(x[k]) for x in said} for k in (0, 1))
    (server,) = servers
    assert alive(server) and len(others) == 9 and not any(map(alive, others))
  assert not alive(server)


@pytest.mark.parametrize('workers', [0, 1])
def test_a_task_that_can_no_longer_judge_ends_the_run(bad, workers):
  """It costs more than a row."""
  task = bad.Misbehaving()
  with SessionPool(task, workers) as pool:
    played = Played(pool, task, 2)
    with pytest.raises(sandbox.BreachError, match='anything is right'):
      played.step({0: 'one', 1: 'breach'})


def test_a_repeated_round_hears_what_it_heard_first(bad, tmp_path):
  """A call that fails once only: journaled replies win, later ones are new."""
  task = bad.Misbehaving()

  def run(last):
    pool = NumberedCalls(
      SessionPool(task, 1, 1.0), tmp_path / 'journal', writer=sole_writer()
    )
    played = Played(pool, task, 3)
    played.step({0: 'one', 1: f'once {tmp_path}/flag', 2: 'one'})
    kinds = [a.kind for a in played.answers]
    if last:
      played.step({0: 'two', 2: 'two'})
    answers, counts = played.said, pool.counts()
    pool.close()
    return kinds, answers, counts

  kinds, first, _ = run(last=False)
  assert kinds == ['ok', 'timeout', 'ok']
  kinds, again, counts = run(last=True)
  assert kinds == ['ok', 'timeout', 'ok']
  assert [said[:2] for said in again] == first
  assert again[0][2]['observation'].startswith('2:two')
  assert counts['ok'] == 2  # the calls before were not made again


@pytest.mark.parametrize(
  ('reply', 'text'),
  [
    (Reply(('a', 'b'), acting=2), 'acting = 2 is none of 2 players'),
    (Reply('a', acting=1), 'acting = 1 is none of 1 players'),
    (Reply(('a', 3)), 'the observation is int, not text'),
    (Reply(('a', 'b'), rewards={'x': 1.0}), 'one for each of 2 players'),
    (Reply(('a', 'b'), rewards=({}, {'x': 'y'})), "'x' is str, not a number"),
    (Reply('a', duration=-1.0), 'duration = -1.0 < 0'),
  ],
)
def test_replies_of_games_are_checked(reply, text):
  with pytest.raises(ValueError, match=text):
    session_host.check_reply(reply, 'step')


def test_counts_of_numpy_are_counts():
  one = Reply(('a', 'b'), acting=np.int64(1), calls=np.int32(2))
  found = session_host.check_reply(one, 'step')
  assert type(found['acting']) is type(found['calls']) is int
  for wrong in (True, np.bool_(True), np.float32(1), np.ones(1, int)):
    with pytest.raises(ValueError, match='calls = '):
      session_host.check_reply(Reply('a', calls=wrong), 'step')


def test_a_game_without_rewards_has_none_for_each_player():
  found = session_host.check_reply(Reply(('a', '')), 'step')
  assert found['rewards'] == [{}, {}] and found['observation'] == ['a', '']


@pytest.mark.parametrize('workers', [0, 1])
def test_messages_of_failed_episodes_are_cut(bad, workers):
  """The messages of errors, and those about replies."""
  task = bad.Misbehaving()
  with SessionPool(task, workers) as pool:
    played = Played(pool, task, 2)
    assert played.step({0: 'quote', 1: 'names'}) == ['error', 'invalid']
  for answer in played.answers:
    assert ' characters ... ' in answer.detail
    assert len(answer.detail) < 2 * messages.MOST_CHARACTERS + 100
