"""Frozen models that environments ask: what they change, and what they cost."""

import dataclasses
import json
import os
import signal

import jax
import numpy as np
import pytest

from rl_jax.episodes import partners as partners_lib
from rl_jax.episodes.candidate_log_probs import LogProbs
from rl_jax.episodes.partners import Asked, Partners
from rl_jax.episodes.players import Episode
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models.partner_source import Partner
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.environments import Ask
from rl_jax.verification.sessions import Answer, SessionPool

ORACLE = Partner(path='unread', name='oracle', max_tokens=2, answer_tokens=3)


def oracle(bad, rows=1, **changes):
  """Partners whose one member writes backwards; and the calls of it."""
  calls, tokenizer = [], CharTokenizer(bad.LETTERS)

  def texts(params, questions):
    calls.append([tokenizer.decode(ids) for ids in questions])
    return [params(text) for text in calls[-1]]

  def log_probs(params, pairs):
    del params
    return [-len(question) - len(ids) / 3 for question, ids in pairs]

  source = dataclasses.replace(ORACLE, **changes)
  encode = tokenizer.encode
  asked = Asked(source, bad.backwards, encode, encode, texts, log_probs, rows)
  return Partners([asked]), calls


@pytest.fixture(scope='module', name='inside')
def _inside(bad, Played):
  """A round in which the environment knows the answers."""
  return Played(bad.Asking(inside=True))


def test_rows_are_those_of_an_environment_that_knows(bad, inside, Played):
  """E0: tokens, log-probs, turns, rewards; equal questions are asked once."""
  partners, calls = oracle(bad, max_tokens=3)
  played = Played(bad.Asking(), partners=partners)
  jax.tree.map(
    np.testing.assert_array_equal,
    *(
      {f.name: getattr(x.host, f.name) for f in dataclasses.fields(x.host)}
      | {'outcomes': [o.components for o in x.outcomes]}
      for x in (played, inside)
    ),
  )
  assert len(calls) > 3 and all(len(set(x)) == len(x) for x in calls)
  metrics = played.episodes.metrics()
  told = [played.episodes.shown()(row)['turns'] for row in range(12)]
  asked = [x for turns in told for turn in turns for x in turn['asked']]
  assert all(answer == bad.backwards(text) for text, answer in asked)
  # And the question at the beginning of each.
  assert metrics['episode/questions'] == len(asked) + 12
  assert 'episode/questions' not in inside.episodes.metrics()


@pytest.fixture(scope='module', name='together')
def _together(bad, Played):
  """The round, whose partner reads one question a call."""
  partners, _ = oracle(bad, max_tokens=3)
  return Played(bad.Asking(), partners=partners)


@pytest.mark.parametrize('rows', [1, 4, 100])
def test_the_rows_are_those_of_a_plain_loop(
  bad, together, in_slots, plain_episodes, rows
):
  """E2; E0 by calls of a model of so many rows."""
  if rows == 1:
    partners, _ = oracle(bad, max_tokens=3)
    plain_episodes.check_plain(together, bad.Asking(), partners=partners)
  partners, calls = oracle(bad, rows=rows, max_tokens=3)
  found = in_slots.InSlots(together, bad.Asking(), partners=partners)
  in_slots.check_same(together, found, log_probs=True)
  assert all(len(set(x)) == len(x) for x in calls)
  metrics = found.episodes.metrics()
  told = [found.episodes.shown()(row)['turns'] for row in range(12)]
  count = sum(len(turn['asked']) for turns in told for turn in turns)
  # And the question at the beginning of each.
  assert metrics['episode/questions'] == count + 12
  assert metrics['calls/partner/ran'] >= 0 <= metrics['calls/partner/queued']
  if rows == 100:  # all that wait are asked when nothing else is left
    assert len(calls) < 12


@pytest.mark.parametrize('seed', range(4))
def test_the_order_of_answers_changes_nothing(
  bad, together, in_slots, delayed_calls, seed
):
  """E0, also the log-probs; with a journal nothing is asked again."""

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.4 if timeout == 0.0 else timeout)

  def play(calls, rows, **more):
    partners, asked = oracle(bad, rows=rows, max_tokens=3)
    found = in_slots.InSlots(
      together, bad.Asking(), calls, partners=partners, **more
    )
    return found, asked

  first, _ = play(in_slots.CallsHere, 1)
  found, _ = play(lambda make: Ticking(make, seed=seed), 1 + seed)
  in_slots.check_same(first, found, log_probs=True)


def test_a_round_that_is_repeated_asks_nobody(
  bad, together, in_slots, tmp_path
):
  """E0: answers of partners are in the journal, too."""

  def play(calls):
    partners, asked = oracle(bad, max_tokens=3)
    found = in_slots.InSlots(
      together, bad.Asking(), calls, partners=partners, workdir=tmp_path
    )
    return found, asked

  def refuses(make):
    def no_call(request):
      raise AssertionError(f'{request.key} is called again')

    return in_slots.CallsHere(no_call)

  first, asked = play(in_slots.CallsHere)
  again, asked_again = play(refuses)
  assert asked and not asked_again
  in_slots.check_same(first, again, log_probs=True)


def test_a_question_that_is_too_long_costs_its_own_row(
  bad, Played, plain_episodes
):
  """E2 against a plain loop."""
  played = Played(bad.Asking(), partners=oracle(bad)[0])
  partners, _ = oracle(bad)
  plain_episodes.check_plain(played, bad.Asking(), partners=partners)
  errors = [one.error for one in played.outcomes]
  assert any(errors) and not all(errors)


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(bad, inside, Played, monkeypatch):
  """E0: episodes are repeated with the answers that they had."""
  kills, submit = [], SessionPool.submit

  def killed_before(pool, request, order):
    if not kills and len(request.actions) == 3:  # the last one an answer
      kills.extend(pool.worker_pids())
      os.kill(kills[0], signal.SIGKILL)
    submit(pool, request, order)

  monkeypatch.setattr(SessionPool, 'submit', killed_before)
  partners, _ = oracle(bad, max_tokens=3)
  played = Played(bad.Asking(), workers=1, partners=partners)
  assert len(kills) == 1
  assert played.outcomes == inside.outcomes
  np.testing.assert_array_equal(
    played.host.response_BT, inside.host.response_BT
  )


def episodes_of(bad, partners, actions, **task):
  """Episodes of one action each, played until the next turn."""
  task = bad.Asking(**task)
  episodes = [
    Episode((1, n), task.example('train', 0)) for n in range(len(actions))
  ]
  with SessionPool(task) as pool:
    partners.play_on(pool.ask, episodes)
    for episode, action in zip(episodes, actions, strict=True):
      episode.actions.append(action)
      episode.roles.append(0)
    going = [episode for episode in episodes if not episode.over()]
    partners.play_on(pool.ask, going)
  return episodes


def test_a_question_that_does_not_fit_costs_its_episode(bad):
  """Too long, of letters that the model has not, or without end."""
  actions = ['ab', 'abc', 'a?', 'g']
  partners, calls = oracle(bad)
  found = episodes_of(bad, partners, actions, endless=True)
  reasons = [e.failure and e.failure[1] for e in found]
  assert reasons[0] is None and found[0].said[-1]['observation'] == 'ba'
  assert reasons[1] == "partner 'oracle': a text of 3 tokens, allowed are 1..2"
  assert "'?'" in reasons[2]
  assert reasons[3] == '64 questions between two turns; allowed are fewer'
  assert calls[1] == ['ab', 'g'] and len(calls) == 65


def test_processes_ask_together(bad, monkeypatch):
  """All questions in one order, equal ones once; and until nobody asks."""
  others = [[['oracle', 'gf', []], ['oracle', 'ab', []]], [['muse', 'a', []]]]

  def gather(own):
    other = others.pop(0) if others else []
    return [json.loads(json.dumps(own)), other]

  partners, calls = oracle(bad)
  replies = [{'ask': ask} for ask in ({'text': 'ab'}, {'text': 'c'}, None)]
  for reply in replies:
    reply |= {'observation': '', 'done': False, 'truncated': False}
    if reply['ask']:
      reply['ask'] |= {'partner': 'oracle', 'candidates': []}
  monkeypatch.setattr(partners_lib.processes, 'gather', gather)

  def say(requests):
    return [Answer(replies[len(requests[0].actions)])]

  episode = Episode((1, 0), bad.Asking().example('train', 0))
  partners.play_on(say, [episode])
  assert episode.actions == ['ba', 'c'] and not episode.over()
  assert calls == [['ab', 'gf'], ['c']] and not others


@pytest.mark.parametrize('known', [True, False])
def test_an_unknown_partner_costs_the_episode(bad, known):
  partners = oracle(bad)[0] if known else Partners()
  (found,) = episodes_of(bad, partners, ['a'], partner='muse')
  listed = "['oracle']" if known else '[]'
  assert found.failure[1] == f"asks the partner 'muse'; the run has {listed}"


def test_log_probs_come_as_json(bad):
  """Every candidate has one, rounded; an episode gets them as its next
  input.
  """
  episode = Episode((1, 0), bad.Asking().example('train', 0))
  reply = {'observation': '', 'done': False, 'truncated': False}
  ask = {'partner': 'oracle', 'text': 'ab', 'candidates': ['c', 'defg', 'de']}
  replies = [{**reply, 'ask': ask}, {**reply, 'ask': None}]

  def say(requests):
    return [Answer(replies[len(requests[0].actions)])]

  oracle(bad, answer_tokens=4)[0].play_on(say, [episode])
  assert episode.actions == ['[-2.3333, -3.3333, -2.6667]']
  assert episode.begun == 2 and not episode.over()
  replies[0]['ask'] = {**ask, 'candidates': ['c', '']}
  lost = Episode((1, 0), episode.example)
  oracle(bad)[0].play_on(say, [lost])
  assert lost.failure[1].endswith('a text of 0 tokens, allowed are 1..3')


@pytest.mark.slow
def test_log_probs_are_those_of_the_trainer(toy, tiny):
  """E1: the sum over a candidate's tokens, whatever is batched with it."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  pairs = [([3, 4], [5]), ([6], [7, 8, 9]), ([3, 4, 5], [2, 6])]
  with jax.set_mesh(mesh):
    params = jax.device_put(tiny.params(), mesh_lib.replicated(mesh))
    read = LogProbs(tiny.CFG, mesh, pad_id=0, rows=2, sizes=(3, 3))
    found = read(params, pairs)
    response, mask, prompt, prompt_mask = np.zeros((4, 3, 3))
    for row, (question, candidate) in enumerate(pairs):
      prompt[row, 3 - len(question) :] = question
      prompt_mask[row, 3 - len(question) :] = 1.0
      response[row, : len(candidate)] = candidate
      mask[row, : len(candidate)] = 1.0
    traj = toy.trajectories(
      mask,
      group_size=1,
      response_BT=response.astype(np.int32),
      prompt_NP=prompt.astype(np.int32),
      prompt_mask_NP=prompt_mask.astype(np.float32),
    )
    stats = token_statistics(Forward(model=tiny.CFG), params, traj, ('logp',))
  expected = (np.asarray(stats['logp']) * mask).sum(axis=1)
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_names_of_task_and_configuration_agree(bad):
  """Before anything is compiled."""

  def config(task, *names):
    partners = tuple(Partner(path='models/x', name=name) for name in names)
    evaluation = type('Evaluation', (), {'sets': ()})
    fields = {'task': task, 'partners': partners, 'evaluation': evaluation}
    return type('Config', (), fields)

  partners_lib.check(config(bad.Asking(), 'oracle'))
  with pytest.raises(ValueError, match=r"Asking asks partners \['oracle'\]"):
    partners_lib.check(config(bad.Asking(), 'muse'))
  with pytest.raises(
    ValueError, match=r"partners: \['muse'\] are asked by nob"
  ):
    partners_lib.check(config(bad.Asking(), 'oracle', 'muse'))
  with pytest.raises(ValueError, match='names occur twice'):
    partners_lib.check(config(bad.Asking(), 'oracle', 'oracle'))
  with pytest.raises(ValueError, match=r"Partner.path = ''"):
    Partner(path='')


@pytest.mark.parametrize(
  'ask, expected',
  [
    ('text', 'is not an Ask'),
    (Ask('oracle', 3), 'has parts that are not text'),
    (Ask('oracle', 'a' * 50_001), 'more than 50000 characters'),
  ],
)
def test_bad_questions_are_invalid_replies(bad, ask, expected):
  from rl_jax.tasks.environments import Reply
  from rl_jax.verification.session_host import check_reply

  with pytest.raises(ValueError, match=expected):
    check_reply(Reply(ask=ask), 'step')
  with pytest.raises(ValueError, match='after its end'):
    check_reply(Reply(ask=Ask('oracle', 'a'), done=True), 'step')
