"""Whole episodes: the record, failures, beginnings, limits, one turn."""

import dataclasses
import os
from types import SimpleNamespace

import numpy as np
import pytest

from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.players import Episode, Player
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import (
  TurnConfig,
  check,
  check_order,
  crosses_updates,
  turn_format,
)
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.method import Method
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.policies import Frozen
from rl_jax.pieces.selection import TopSpread, ZeroVariance
from rl_jax.rollouts.wrappers import Opponent, ReflectedClones
from rl_jax.runtime.writer import sole_writer
from rl_jax.tasks.environments.base import Reply, seed_of
from rl_jax.types import ENVIRONMENT, PAD, POLICY
from rl_jax.verification import session_host
from rl_jax.verification.pool import VerifierPool
from rl_jax.verification.sessions import Answer, SessionPool
from rl_jax.worlds import KeyDoor

N, G, T = 3, 4, 32
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)


@pytest.fixture(scope='module', name='whims')
def _whims(Played):
  """A round in which nothing fails."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(os.path.dirname(os.path.dirname(__file__)))
    import misbehaving_environments

    yield Played(misbehaving_environments.Whimsical())


def test_the_record_is_what_was_said(whims):
  """Actions and observations by turn; ids of texts are never changed."""
  kinds, turns = whims.host.kind_BT, whims.host.turn_BT
  np.testing.assert_array_equal(turns == -1, kinds == PAD)
  np.testing.assert_array_equal(whims.host.mask_BT > 0, kinds == POLICY)
  shown, several = whims.episodes.shown(), 0
  for row in range(N * G):
    length = whims.host.length_B[row]
    assert (np.diff(turns[row, :length]) >= 0).all()
    told = shown(row)['turns']
    assert whims.turn_texts(row, POLICY) == [t['action'] for t in told]
    heard = [t['observation'][:6] for t in told[1:]]
    assert whims.turn_texts(row, ENVIRONMENT)[1:] == heard
    several += len(told) > 2
    for k in range(len(told)):
      tokens = ((turns[row] == k) & (kinds[row] == POLICY)).sum()
      assert 1 <= tokens <= TURNS.max_turn_tokens
  assert several > 3
  assert whims.episodes.metrics()['episode/cut_observations'] > 0


def test_rewards_of_turns_add_up(whims):
  """reward = sum of weighted components of all turns."""
  shown = whims.episodes.shown()
  for row, outcome in enumerate(whims.outcomes):
    told = shown(row)['turns']
    expected = [
      t['rewards']['outcome'] + 2 * t['rewards']['bonus'] for t in told
    ]
    reward_K = whims.host.turns.reward_BK[row]
    np.testing.assert_allclose(reward_K[: len(told)], expected, rtol=1e-6)
    assert (reward_K[len(told) :] == 0).all()
    total = outcome.components['outcome'] + 2 * outcome.components['bonus']
    np.testing.assert_allclose(reward_K.sum(), total, rtol=1e-6)
    np.testing.assert_array_equal(
      whims.host.turns.calls_BK[row, : len(told)], [t['calls'] for t in told]
    )


def test_rewards_that_nothing_counts_are_said(bad, Played, caplog):
  """Once; a weight without any component is a mistake of names."""
  task = bad.Whimsical(reward_weights={'score': 1.0})
  played = Played(task)
  assert "task.reward_weights, ['score']: their rewards are 0; they have" in (
    caplog.text
  )
  caplog.clear()
  played.episodes.outcomes(played.traj, played.examples, None)
  assert 'reward_weights' not in caplog.text
  assert {x.components['score'] for x in played.outcomes} == {0.0}


def test_equal_states_have_equal_numbers_in_a_group(whims):
  """The start is shared by all; -1 where nothing was played or said."""
  shown = whims.episodes.shown()
  for name, key in (('state', 'state'), ('action', 'understood')):
    number_BK = getattr(whims.host.turns, f'{name}_BK')
    for group in range(N):
      seen = {}
      for row in range(group * G, group * G + G):
        told = shown(row)['turns']
        for k, turn in enumerate(told):
          if turn[key] is None:
            assert number_BK[row, k] == -1
          else:
            seen.setdefault(turn[key], set()).add(number_BK[row, k])
        assert (number_BK[row, len(told) :] == -1).all()
      assert all(len(numbers) == 1 for numbers in seen.values())
      assert len(set.union(*seen.values())) == len(seen)
      if name == 'state':
        starts = number_BK[group * G : group * G + G, 0]
        assert len(set(starts)) == 1


def test_only_the_environment_finishes_an_episode(whims):
  """Cut by the environment or by a limit: not finished, reward kept."""
  shown, ends = whims.episodes.shown(), []
  for row in range(N * G):
    end = shown(row)['end']
    ends.append(end)
    assert whims.host.finished_B[row] == (end == 'done')
    assert whims.outcomes[row].error is None
    if end == 'limit':
      length, played = whims.host.length_B[row], len(shown(row)['turns'])
      assert (
        played == TURNS.max_turns or length + TURNS.max_observation_tokens >= T
      )
  assert {'done', 'truncated', 'limit'} == set(ends)


@pytest.mark.parametrize('workers', [0, 2])
def test_a_failure_costs_its_row_alone(bad, whims, workers, Played):
  """E0: the rows that meet no failure are those of the round without any."""
  kinds = {'a': 'raise', 'b': 'nan', 'g': 'text'}
  if workers:
    kinds |= {'a': 'hang', 'b': 'exit', 'g': 'flood'}
  played = Played(bad.Whimsical(failing=kinds), workers=workers, seconds=0.5)
  shown, failed = whims.episodes.shown(), []
  for row, outcome in enumerate(played.outcomes):
    letters = [turn['action'][:1] for turn in shown(row)['turns']]
    failed.append(bool(set(letters) & set(kinds)))
    assert (outcome.error is not None) == failed[-1]
    if not failed[-1]:
      assert outcome == whims.outcomes[row]
      np.testing.assert_array_equal(
        played.host.response_BT[row], whims.host.response_BT[row]
      )
  assert 2 < sum(failed) < len(failed)
  assert sum(played.counts.values()) - played.counts['ok'] == sum(failed)


def test_a_turn_that_takes_too_long_may_be_wrong(bad, whims, Played):
  """Or ends its process twice: the episode ends there, and keeps its rewards.

  E0: all that was earned before, and the other rows.
  """
  played = Played(
    bad.Whimsical(failing={'a': 'hang', 'b': 'exit', 'g': 'raise'}),
    workers=1,
    seconds=0.5,
    on_timeout='wrong',
  )
  shown, kinds = whims.episodes.shown(), set()
  for row, outcome in enumerate(played.outcomes):
    told = shown(row)['turns']
    letters = [turn['action'][:1] for turn in told]
    first = next((k for k, x in enumerate(letters) if x in 'abg' and x), None)
    kinds.add(outcome.kind)
    if first is None:
      assert outcome == whims.outcomes[row]
      continue
    kind = {'a': 'timeout', 'b': 'died', 'g': 'error'}[letters[first]]
    assert outcome.kind == kind and outcome.error.startswith(kind)
    if kind == 'error':
      assert outcome.components is None
      continue
    for name, total in outcome.components.items():
      assert total == sum(turn['rewards'][name] for turn in told[:first])
    own = played.episodes.shown()(row)
    assert own['end'] == kind and len(own['turns']) == first + 1
    assert played.host.finished_B[row]
  assert kinds >= {'ok', 'timeout', 'died'}


def test_a_lost_turn_ends_a_game_for_all_of_its_players():
  """With nothing more to hear or to earn; one that does not begin is lost."""
  game = Episode((0, 0), None, 2, on_timeout='wrong')
  first = Reply(('a', 'b'), acting=1, rewards=({}, {'outcome': 0.5}))
  game.hear(Answer(session_host.check_reply(first, 'reset')))
  players = [Player(game, 0), Player(game, 1)]
  players[1].act('hangs')
  game.hear(Answer(None, 'timeout', 'killed'))
  assert game.over() and game.failure is None
  assert players[1].record()['lost'] == ('timeout', 'killed')
  assert players[1].record()['finished'] and players[1].heard() == ''
  for kind in ('timeout', 'died'):
    game = Episode((0, 0), None, 2, on_timeout='wrong')
    game.hear(Answer(None, kind, 'killed'))
    assert game.failure == (kind, 'killed') and game.lost is None


def test_a_reset_that_fails_costs_the_rows_of_its_prompt(bad, whims, Played):
  """E2: the others are those of a round without any; nothing is retried."""
  unable = {1: 'hang', 2: 'exit', 4: 'nan', 5: 'text', 6: 'flood'}
  task = bad.Whimsical(unable=unable)
  played = Played(task, workers=1, seconds=0.5, num_prompts=7)
  failed = [outcome.error is not None for outcome in played.outcomes]
  assert failed == [row // G in unable for row in range(7 * G)]
  assert played.outcomes[:G] == whims.outcomes[:G]
  for name in ('response_BT', 'kind_BT', 'turn_BT'):
    np.testing.assert_array_equal(
      getattr(played.host, name)[:G], getattr(whims.host, name)[:G]
    )
  kinds = [played.outcomes[row * G].kind for row in unable]
  assert kinds == ['timeout', 'died', *3 * ['invalid']]
  assert played.episodes.metrics()['episode/failed_resets'] == 5 * G
  assert whims.episodes.metrics()['episode/failed_resets'] == 0
  # Two at start and all as they are drawn; not for each of their rows.
  assert sum(played.counts.values()) - played.counts['ok'] == 2 + 5
  assert played.episodes.shown()(G)['turns'] == []


def test_a_task_of_which_nothing_begins_is_an_error(bad, Played):
  """Before anything is compiled; the message names task, seed and reason."""
  task = bad.Whimsical(unable=dict.fromkeys(range(1000), 'raise'))
  seed = seed_of(task.example('train', 0))
  with pytest.raises(
    ValueError,
    match=f'(?s)Whimsical: none of 4 episodes.*seed {seed}: error.*a bug',
  ):
    Played(task)


def test_an_environment_that_no_longer_answers_ends_the_run(bad, Played):
  """More than the share of a round; fewer cost their rows only.

  The message names the tools of the action that had no answer.
  """
  task = bad.Whimsical(failing=dict.fromkeys('abcdefg', 'raise'))
  with pytest.raises(
    RuntimeError,
    match=r'Whimsical: \d+ of 12 episodes .*failed_share = 0.5; the first is '
    r'row \d+ on host .*, tools tool_[a-g], error: (?s:.*)a bug',
  ):
    Played(task, failed_share=0.5)
  played = Played(task, failed_share=1.0)
  assert played.episodes.metrics()['calls/timeouts'] == 0


def test_openings_are_journaled(bad, tmp_path):
  """A reset that hangs once: the run that continues has the same prompts."""
  task = bad.Whimsical(unable={5: f'once {tmp_path}/flag'})
  tokenizer = CharTokenizer(task.alphabet + 'twi')

  def opened(journal):
    pool = SessionPool(task, 1, 0.5)
    episodes = SlotRunner(
      TurnTaking(
        task, tokenizer=tokenizer, stop=make_stop(tokenizer), turns=TURNS
      ),
      NumberedCalls(pool, journal, writer=sole_writer()),
    )
    prompts = EpisodePrompts(task, 'train', tokenizer, 8, begin=episodes.open)
    found = [*prompts.batch([0, 5])[0], *prompts.batch([5, 0])[0]]
    counts = pool.counts()
    episodes.close()
    return [(one.prompt, one.failure) for one in found], counts

  found, counts = opened(tmp_path / 'journal')
  assert found[1] == ('', ('timeout', 'killed after 0.5 seconds'))
  assert found[2] == ('twice', None) and found[0] == found[3]
  assert (counts['ok'], counts['timeout']) == (4 + 1, 1)  # none is asked twice
  again, counts = opened(tmp_path / 'journal')
  assert again == found and not any(counts.values())


def test_a_group_that_does_not_begin_equal_is_an_error(bad, Played):
  """The message names task, example and seed."""
  task = bad.Different()
  seed = seed_of(task.example('train', 0))
  alphabet = {'alphabet': '0123456789 '}
  different = type('Different', (bad.Different,), alphabet)()
  with pytest.raises(
    RuntimeError, match=f'Different: the episode of example 0, seed {seed}'
  ):
    Played(different)


@dataclasses.dataclass(frozen=True)
class OneStep(KeyDoor):
  """A task whose reward is that of the first step."""

  make = None

  def reward(self, example, response):
    """The rewards of an episode of one turn."""
    episode = KeyDoor(words=self.words).make(example)
    episode.reset(seed_of(example))
    return episode.step(response).rewards


def test_one_turn_is_a_response(Played):
  """E2: K = 1 against the path of tasks: tokens, log-probs and rewards."""
  turns = dataclasses.replace(TURNS, max_turns=1)
  played = Played(KeyDoor(), turns, size=3)
  alone = played.engine.generate(
    played.params,
    traj=played.engine.start(*played.arrays, 0, 0),
    key=played.key,
  )
  texts = [
    played.tokenizer.decode(ids[ids > 1])
    for ids in np.asarray(alone.response_BT)
  ]
  assert [
    t['turns'][0]['action'] for t in map(played.episodes.shown(), range(N * G))
  ] == texts
  for name in ('response_BT', 'kind_BT', 'length_B', 'mask_BT'):
    np.testing.assert_array_equal(
      getattr(played.traj, name), getattr(alone, name)
    )
  np.testing.assert_allclose(
    played.traj.logp_behaviour_BT, alone.logp_behaviour_BT, atol=1e-6
  )
  with VerifierPool(OneStep(), 0) as pool:
    judged = TextVerifier(pool).outcomes(alone, played.examples, texts)
  assert judged == played.outcomes


def test_disagreements_of_task_and_limits_are_named():
  method = Method()
  limits = {'turns': None, 'slots': None, 'speculative': None}
  rollout = type('Rollout', (), limits)()
  with pytest.raises(ValueError, match='rollout.turns is missing: KeyDoor'):
    check(KeyDoor(), rollout, method)
  rollout.turns = TURNS
  check(KeyDoor(), rollout, method)
  with pytest.raises(ValueError, match='OneStep is not an environment'):
    check(OneStep(), rollout, method)


def test_batches_that_must_be_whole_do_not_cross_updates(bad):
  """Rollout pieces, data and some filters; in order of arrival an error."""
  limits = {'turns': TURNS, 'staleness': 1, 'order': 'arrival'}
  limits |= {'recorded_prompts': 0}

  def config(task=None, method=None, **fields):
    return SimpleNamespace(
      task=task or KeyDoor(),
      method=method or Method(),
      rollout=SimpleNamespace(**{**limits, **fields}),
      judges=(),
    )

  repeats = Method(rollout=ReflectedClones(texts=('0',)))
  opponent = Method(rollout=Opponent(rule=Frozen()))
  filtered = Method(group_filter=ZeroVariance())
  compares = Method(group_filter=TopSpread())
  for one in (
    config(),
    config(bad.RallyTask()),
    config(bad.Asking()),
    config(method=filtered),
  ):
    assert crosses_updates(one)
    check_order(one)
  for one, match in (
    (config(method=repeats), 'method.rollout: only plain groups'),
    (config(bad.RallyTask(), opponent), 'method.rollout: only plain groups'),
    (config(bad.RallyTask(), filtered), '= ZeroVariance, but RallyTask has 2'),
    (config(method=compares), 'group_filter = TopSpread, which compares'),
    (config(recorded_prompts=1), 'rollout.recorded_prompts: only plain'),
    (config(staleness=0), 'rollout.staleness = 0'),
    (config(turns=None), 'rollout.turns = None'),
  ):
    assert not crosses_updates(one)
    with pytest.raises(ValueError, match=f"order = 'arrival' with .*{match}"):
      check_order(one)
    one.rollout.order = 'fixed'
    check_order(one)


def test_plain_observations_have_nothing_around_them():
  task = KeyDoor()
  tokenizer = CharTokenizer(task.alphabet)
  start = turn_format(task, tokenizer, dataclasses.replace(TURNS, cut='start'))
  end = turn_format(task, tokenizer, TURNS)
  ids = tokenizer.encode('01201201')
  assert end.observation('01201201', True) == (ids[:6], True)
  assert start.observation('01201201', True) == (ids[-6:], True)
  assert end.observation('012', False) == (ids[:3], False)
