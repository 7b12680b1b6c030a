"""Environments of OpenEnv, by a client of the same protocol."""

import dataclasses
import os

import pytest

from rl_jax.tasks.environments.open_env import OpenEnv
from rl_jax.verification import session_host
from rl_jax.verification.sessions import Request, SessionPool


@pytest.fixture(name='client')
def _client(monkeypatch):
  """The module of a client, importable by workers as well."""
  monkeypatch.syspath_prepend(
    os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
  )
  import open_env_client

  return open_env_client


def played(pool, task, actions):
  """Answers of one episode."""
  example = task.example('train', 0)
  request, answers = Request((0, 0), example, 7), []
  for action in [None, *actions]:
    if action is not None:
      request = dataclasses.replace(
        request,
        actions=(*request.actions, action),
        before=(
          *request.before,
          session_host.fingerprint(answers[-1].reply),
        ),
      )
    answers += pool.ask([request])
  return answers


@pytest.mark.parametrize('workers', [0, 1])
def test_an_episode_is_a_session(client, workers):
  """The seed, texts of a field, rewards, and the end."""
  task = OpenEnv(client=client.connected, action='guess', observation='said')
  with SessionPool(task, workers) as pool:
    first, second, last = played(pool, task, ['1', '7'])
  assert first.reply['observation'] == 'between 0 and 9'
  assert second.reply['observation'] == 'more'
  assert second.reply['rewards'] == {'outcome': 0.0, 'reward': 0.0}
  assert last.reply['done']
  assert last.reply['rewards'] == {'outcome': 1.0, 'reward': 1.0}


@pytest.mark.parametrize('said', ['seven', '77'])
def test_an_action_that_the_server_refuses_is_answered(client, said):
  """The policy cannot void its row; the session continues."""
  task = OpenEnv(
    client=client.connected,
    action='guess',
    observation='said',
    invalid_reward=-0.5,
  )
  with SessionPool(task, 0) as pool:
    _, refused, last = played(pool, task, [said, '7'])
  assert refused.reply['observation'] == 'Invalid action.\nbetween 0 and 9'
  assert refused.reply['rewards'] == {'outcome': 0.0, 'reward': -0.5}
  assert 'Server error' in refused.reply['info']['refused']
  assert last.reply['rewards'] == {'outcome': 0.0, 'reward': 1.0}


def test_another_error_ends_the_episode(client):
  task = OpenEnv(client=client.connected, action='guess', observation='said')
  with SessionPool(task, 0) as pool:
    _, found = played(pool, task, ['lost'])
  assert found.kind == 'error' and 'SESSION_ERROR' in found.detail


def test_the_prompt_comes_first(client):
  task = OpenEnv(client=client.connected, prompt='Guess a number.')
  assert task.example('train', 3).prompt == 'Guess a number.'
  assert OpenEnv(client=client.connected).example('train', 3).prompt == ''


def test_observations_are_json_without_a_field(client):
  with SessionPool(OpenEnv(client=client.connected, action='guess')) as pool:
    (first,) = played(pool, OpenEnv(client=client.connected), [])
  assert first.reply['observation'] == '{"said": "between 0 and 9"}'


@pytest.mark.parametrize(
  ('fields', 'text'),
  [
    ({'observation': 'other'}, "the server has ['said']"),
    ({'action': 'other'}, 'KeyError'),
  ],
)
def test_fields_that_the_server_lacks_are_named(client, fields, text):
  task = OpenEnv(client=client.connected, **fields)
  with SessionPool(task) as pool:
    answers = [
      one
      for actions in ([], ['1'])
      for one in played(pool, task, actions if 'action' in fields else [])
    ]
  assert answers[-1].kind == 'error' and text in answers[-1].detail
