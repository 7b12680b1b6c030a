"""Rollouts of verifiers as coroutine episodes; without the package, a stub."""

import dataclasses
import importlib.util
import pathlib
import signal
import sys

import pytest

from rl_jax.tasks import Verifiers
from rl_jax.verification import session_host
from rl_jax.verification.sessions import Request, SessionPool

TESTS = pathlib.Path(__file__).resolve().parents[2]
_MISSING = importlib.util.find_spec('verifiers') is None


@pytest.fixture(
  name='rollouts',
  params=[
    'stub',
    pytest.param(
      'package',
      marks=pytest.mark.skipif(_MISSING, reason="needs the extra 'verifiers'"),
    ),
  ],
)
def _rollouts(request, monkeypatch):
  """The module of an environment, importable by workers as well."""
  for name in [x for x in sys.modules if x.split('.')[0] == 'verifiers']:
    monkeypatch.delitem(sys.modules, name)
  monkeypatch.delitem(sys.modules, 'verifiers_rollouts', raising=False)
  if request.param == 'stub':
    monkeypatch.syspath_prepend(TESTS / 'stubs')
  monkeypatch.syspath_prepend(TESTS)
  import verifiers_rollouts

  yield verifiers_rollouts
  for name in [x for x in sys.modules if x.split('.')[0] == 'verifiers']:
    monkeypatch.delitem(sys.modules, name)


def played(task, actions, workers, index=0):
  """Answers of one episode."""
  request, answers = Request((0, 0), task.example('train', index), 7), []
  with SessionPool(task, workers, 60.0) as pool:
    for action in [None, *actions]:
      if action is not None:
        prints = map(session_host.fingerprint, (x.reply for x in answers))
        request = dataclasses.replace(
          request, actions=(*request.actions, action), before=tuple(prints)
        )
      answers += pool.ask([request])
      if answers[-1].reply is None:
        break
  return answers


@pytest.mark.parametrize('workers', [0, 1])
def test_a_rollout_is_an_episode(rollouts, workers):
  """The messages of the prompt, hints, the rubric's reward and functions."""
  task = Verifiers(environment=rollouts.environment)
  example = task.example('train', 2)
  assert example.messages == ({'role': 'system', 'content': 'Guess.'},)
  answers = played(task, ['3', '7', '5'], workers, index=2)
  assert [one.error for one in answers] == [None] * 4
  said = [one.reply['observation'] for one in answers]
  assert said == ['0-5?', 'more', 'less', '']
  assert answers[-1].reply['done']
  rewards = answers[-1].reply['rewards']
  rewards.pop('num_turns', None)  # the package counts turns itself
  assert rewards == {
    **{'outcome': 1.0, 'reward': 1.0},
    **{'right': 1.0, 'turns': 3.0},
  }


def test_an_end_before_the_limit(rollouts):
  """A final response ends the rollout."""
  *_, last = played(Verifiers(environment=rollouts.environment), ['3'], 0)
  assert last.reply['done'] and last.reply['rewards']['turns'] == 1.0


def test_a_turn_without_text_is_judged(rollouts):
  """The package takes it for an error of the model; the policy earns 0."""
  task, actions = Verifiers(environment=rollouts.environment), ['', '', '']
  with SessionPool(task, 0) as pool:
    request, answers = Request((0, 0), task.example('train', 0), 7), []
    for action in [None, *actions]:
      if action is not None:
        request = dataclasses.replace(
          request, actions=(*request.actions, action)
        )
      answers += pool.ask([request])
      if answers[-1].reply['done']:
        break
  assert answers[-1].reply['rewards']['outcome'] == 0.0


def test_splits_are_rows_of_the_two_data_sets(rollouts):
  task = Verifiers(environment=rollouts.environment, num_train=4)
  assert [task.num_prompts(x) for x in ('train', 'validation', 'test')] == [
    *(4, 2, 2)
  ]
  assert task.example('train', 3).answer == '6'
  assert task.example('validation', 1).answer == '3'
  assert task.example('test', 1).answer == '5'


@pytest.mark.parametrize('workers', [0, 1])
def test_each_process_makes_its_environment(rollouts, workers):
  """Rubrics may have pipes, which processes cannot share."""
  task = Verifiers(environment=rollouts.of_its_process)
  task.prepare()
  *_, last = played(task, ['3'], workers)
  assert last.reply['rewards']['outcome'] == 1.0


def test_signals_still_stop_the_run(rollouts):
  before = [signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)]
  Verifiers(environment=rollouts.with_signals).prepare()
  found = [signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)]
  assert found == before


def test_tools_of_the_api_are_refused(monkeypatch):
  """With the reason; of the stub, as the package has other forms of them."""
  monkeypatch.syspath_prepend(TESTS / 'stubs')
  monkeypatch.syspath_prepend(TESTS)
  for name in ('verifiers', 'verifiers.clients', 'verifiers_rollouts'):
    monkeypatch.delitem(sys.modules, name, raising=False)
  import verifiers_rollouts

  task = Verifiers(environment=verifiers_rollouts.with_tools)
  (answer,) = played(task, [], 0)
  assert answer.kind == 'error' and 'has tools of the API' in answer.detail


def test_without_the_package_the_extra_is_named(rollouts, monkeypatch):
  task = Verifiers(environment=rollouts.environment)
  task.prepare()
  monkeypatch.setitem(sys.modules, 'verifiers.clients', None)
  (answer,) = played(task, [], 0)
  assert answer.kind == 'error' and "the extra 'verifiers'" in answer.detail
