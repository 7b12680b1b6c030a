"""Agent code that calls a chat client, turned into an environment."""

import contextlib
import dataclasses
import os
import re
import signal
import threading

import pytest

from rl_jax.episodes.partners import NO_PARTNERS
from rl_jax.episodes.players import Episode
from rl_jax.tasks.environments.program import Program, new_text
from rl_jax.verification.session_host import Host, fingerprint
from rl_jax.verification.sessions import Request, SessionPool
from rl_jax.worlds import Arithmetic

USER = {'role': 'user', 'content': 'u'}
SAID = {'role': 'assistant', 'content': 's'}


@pytest.fixture(scope='module', name='agents')
def _agents():
  """The module of agents, importable by workers as well."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(
      os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    )
    import agents

    yield agents


def program(agent, **fields):
  return Program(task=Arithmetic(digits=1), agent=agent, chat=False, **fields)


def said(task, actions, workers=0):
  """(kind, reply, detail) of reset and of each action; 0: without a pool."""
  example, given, answers = task.example('train', 0), [], []
  host = Host(task)
  with (
    contextlib.closing(host),
    SessionPool(task, workers) if workers else contextlib.nullcontext() as pool,
  ):
    for action in [None, *actions]:
      given += [] if action is None else [action]
      prints = [fingerprint(reply) for _, reply, _ in answers]
      call = (1, 0), example, 0, tuple(given), tuple(prints)
      if workers:
        (one,) = pool.ask([Request(*call)])
        answers.append((one.kind, one.reply, one.detail))
      else:
        answers.append(host.answer(*call))
  return answers


@pytest.mark.parametrize(
  'workers', [0, pytest.param(1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize('agent', ['twice', 'twice_in_turn'])
def test_a_turn_is_what_a_call_returns(agents, workers, agent):
  """The prompt, the second question, and the task's reward of what returns."""
  inner = Arithmetic(digits=1).example('train', 0)
  task = program(getattr(agents, agent))
  for second, reward in (('', 1.0), (inner.answer + '7', 0.0)):
    answers = said(task, [inner.answer, second], workers)
    assert [kind for kind, _, _ in answers] == ['ok'] * 3
    replies = [reply for _, reply, _ in answers]
    assert [r['observation'] for r in replies] == [inner.prompt, '+=', '']
    assert [r['done'] for r in replies] == [False, False, True]
    assert replies[-1]['rewards'] == {'outcome': reward}


@pytest.mark.parametrize(
  'name, actions, expected',
  [
    ('forgetful', ['4'], 'message 0 of a call is'),
    ('repeating', ['4'], r'have the roles \[\]'),
    ('silent', [], 'silent has not called the client'),
    ('failing', ['4'], "KeyError: 'own'"),
    ('numeric', ['4'], 'returned int, not text'),
    ('forgetful_in_turn', ['4'], 'message 0 of a call is'),
    ('silent_in_turn', [], 'has not called the client'),
    ('failing_in_turn', ['4'], "KeyError: 'own'"),
  ],
)
def test_what_is_refused_costs_the_episode(agents, name, actions, expected):
  """With the reason, and the agent's thread ends with its episode."""
  before = threading.active_count()
  answers = said(program(getattr(agents, name)), actions)
  kind, _, detail = answers[-1]
  assert kind == 'error' and re.search(expected, detail), detail
  for thread in threading.enumerate()[before:]:
    thread.join(5.0)
  assert threading.active_count() <= before


def test_coroutines_share_a_process(agents):
  """Rows of one worker; one that goes another way as it is repeated fails."""
  steady, other = program(agents.twice_in_turn), program(agents.other_in_turn)
  for task, kinds in ((steady, ['ok'] * 3), (other, ['mismatch'] * 3)):
    example = task.example('train', 0)
    requests = [Request((0, row), example, 0) for row in range(3)]
    with SessionPool(task, 1) as pool:
      for action in ('1', '2', None):
        answers = pool.ask(requests)
        if action is None:
          break
        assert [one.kind for one in answers] == ['ok'] * 3
        requests = [
          dataclasses.replace(
            request,
            actions=(*request.actions, action),
            before=(*request.before, fingerprint(answer.reply)),
          )
          for request, answer in zip(requests, answers, strict=True)
        ]
        if len(requests[0].actions) == 2:
          os.kill(pool.worker_pids()[0], signal.SIGKILL)
    assert [one.kind for one in answers] == kinds


def test_a_call_may_begin_a_new_context(agents):
  """After the messages of the first one, if the task says so."""
  agent = agents.summarizing
  first, second, last = said(program(agent, rewrites=True), ['12', '4'])
  assert not first[1]['forget']
  assert (second[1]['observation'], second[1]['forget']) == ('2+=', True)
  assert last[1]['done'] and not last[1]['forget']
  kind, _, detail = said(program(agent), ['12'])[-1]
  assert kind == 'error' and 'message 1 of a call is' in detail
  kind, _, detail = said(program(agents.forgetful, rewrites=True), ['1'])[-1]
  assert kind == 'error' and 'message 0 of a call is' in detail


def test_new_messages_of_a_chat():
  """After the system's; one of a user at a time."""
  system = {'role': 'system', 'content': 'be'}
  assert new_text([system, USER], [], 'be', True) == 'u'
  assert new_text([USER, SAID, USER], [USER, SAID], '', True) == 'u'
  assert new_text([USER, SAID, USER, USER], [USER, SAID], '', False) == 'uu'
  for messages, known, chat, expected in (
    ([USER], [], True, "not .'system', 'be'."),
    ([system, USER, USER], [], True, r"\['user', 'user'\]"),
    ([system, USER, SAID], [], False, 'assistant'),
    ([system, USER], [system, USER, SAID], True, "is 'nothing'"),
  ):
    with pytest.raises(ValueError, match=expected):
      new_text(messages, known, 'be', chat)


def test_bad_fields_are_named(agents):
  with pytest.raises(ValueError, match=r'called as \(client, example\)'):
    program(agents.lonely)


def played(task, actions):
  """Replies to reset and to all actions; calls are answered at once."""
  example, given, answers, left = task.example('train', 0), [], [], [*actions]
  with contextlib.closing(Host(task)) as host:
    while True:
      prints = [fingerprint(reply) for _, reply, _ in answers]
      call = (1, 0), example, 0, tuple(given), tuple(prints)
      answers.append(host.answer(*call))
      kind, reply, _ = answers[-1]
      if kind != 'ok' or reply['done']:
        break
      if reply['ask'] is None and not left:
        break
      ask = reply['ask']
      given.append(left.pop(0) if ask is None else ask['text'])
  return given, answers


def test_a_call_of_the_policy_is_made_once(agents, tmp_path, monkeypatch):
  """E0: episodes that are repeated from any place make no known call again."""
  monkeypatch.setenv('NOTED', str(tmp_path / 'calls'))
  task = program(agents.calling)
  given, answers = played(task, ['1', '2'])
  replies = [reply for _, reply, _ in answers]
  observed = [reply['observation'] for reply in replies if not reply['ask']]
  assert observed == ['1start', '1 b', '']
  asks = [reply['ask']['text'] for reply in replies if reply['ask']]
  assert len(asks) == 4 and replies[-1]['done']
  assert (tmp_path / 'calls').read_text() == 'xxxx'
  prints = [fingerprint(reply) for reply in replies]
  for count in range(len(given) + 1):  # another process has it from here on
    with contextlib.closing(Host(task)) as host:
      known = tuple(given[:count]), tuple(prints[:count])
      kind, reply, detail = host.answer(
        (1, 0), task.example('train', 0), 0, *known
      )
    assert kind == 'ok', detail
    if not reply['ask']:
      assert reply == replies[count]
    elif count < 4:
      assert reply['ask']['text'].count('answer') == 1
  # Each of these has made the call that it had no answer of, and no other one.
  made = len((tmp_path / 'calls').read_text()) - 4
  assert made == sum(bool(reply['ask']) for reply in replies) + 1  # of gather


def test_answers_of_calls_are_json(agents):
  """Else the agent hears what is wrong, with the name of the function."""
  (kind, reply, detail) = played(program(agents.failing_calls), [])[1][-1]
  assert kind == 'ok', detail
  for text in (
    'CallError: ValueError: policy.call: the answer of not_json is {1, 2}, not',
    'the answer of not_finite is nan, not JSON',
    'the answer of long has 50014 characters, more than 40000',
    'CallError: OSError: no network',
  ):
    assert text in reply['observation']


def test_an_episode_that_only_calls_ends(agents):
  """After as many calls between two turns as questions are allowed."""
  task = program(agents.calling_for_ever)
  episode = Episode((0, 0), task.example('train', 0))
  with SessionPool(task, 1) as pool:
    NO_PARTNERS.play_on(pool.ask, [episode])
  assert episode.failure == (
    'invalid',
    '64 questions between two turns; allowed are fewer',
  )
