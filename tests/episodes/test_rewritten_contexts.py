"""Episodes whose contexts are rewritten: what is drawn is what is scored."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig, TurnFormat, check
from rl_jax.learning import statistics
from rl_jax.learning.hidden_states import Forward
from rl_jax.method import Method
from rl_jax.models import transformer
from rl_jax.rollouts.wrappers import ReflectedClones
from rl_jax.tasks import MemoryWindow, OpenSpiel, Reworded
from rl_jax.tasks.base import TaskTraits
from rl_jax.tasks.environments import Environment
from rl_jax.tasks.environments.base import EnvironmentTask, Reply
from rl_jax.types import ENVIRONMENT, POLICY
from rl_jax.worlds import Arithmetic, KeyDoor, NarratedKeyDoor

TURNS = TurnConfig(max_turns=6, max_turn_tokens=3, max_observation_tokens=6)
SIZE = 120


@pytest.fixture(scope='module', name='window')
def _window(Played):
  """A round of KeyDoor of which two turns are remembered."""
  return Played(MemoryWindow(KeyDoor(), turns=2), TURNS, size=SIZE)


def logp_of(played, traj=None):
  """The trainer's log-probabilities of the tokens, [B, T]."""
  found = statistics.statistics_in_microbatches(
    Forward(model=played.model), played.params, traj or played.traj, (), ()
  )
  return np.asarray(found[statistics.LOGP])


def contexts(played, row):
  """The tokens of each context of a row, in order."""
  length = played.host.length_B[row]
  start_T = played.host.context_BT[row, :length]
  return [np.flatnonzero(start_T == start) for start in np.unique(start_T)]


def test_the_last_turns_are_read_again(window):
  """Prompt, then the tokens of two turns as they were, then what is new."""
  host, several = window.host, 0
  for row in range(len(host.length_B)):
    told = window.episodes.shown()(row)['turns']
    first, *later = contexts(window, row)
    assert set(host.turn_BT[row, first]) == set(range(min(3, len(told))))
    spoken = window.turn_texts(row, POLICY)
    for k, turn in enumerate(told):
      assert turn.get('forgets', False) == (k > 2)
    for k, tokens in enumerate(later, start=3):
      several += 1
      assert set(host.turn_BT[row, tokens]) == {k}
      ids = host.response_BT[row, tokens]
      own = host.kind_BT[row, tokens] == POLICY
      heard = [turn['observation'] for turn in told]
      before = [heard[n] + spoken[n] for n in (k - 2, k - 1)]
      assert window.tokenizer.decode(ids[~own]) == ''.join(before) + heard[k]
      assert window.tokenizer.decode(ids[own]) == spoken[k]
  assert several > 10


def test_the_record_is_that_of_a_plain_loop(window, plain_episodes):
  """E2: contexts, tokens and rewards."""
  task = MemoryWindow(KeyDoor(), turns=2)
  plain_episodes.check_plain(window, task)


def test_what_is_drawn_is_what_is_scored(window):
  """E1: the sampler's log-probs are the trainer's, in every context."""
  own = window.host.kind_BT == POLICY
  np.testing.assert_allclose(
    logp_of(window)[own], window.host.logp_behaviour_BT[own], atol=2e-5
  )
  whole = dataclasses.replace(window.traj, context_BT=None)
  late = own & (window.host.context_BT > 0)
  assert np.abs(logp_of(window, whole) - logp_of(window))[late].max() > 1e-3


def test_a_context_is_a_row_of_its_own(window, plain_forward):
  """E1 against a textbook decoder that reads prompt and context only."""
  host, model = window.host, window.model
  logp_BT, seen = logp_of(window), 0
  embed = np.asarray(window.params['model']['embed'])
  for row in range(0, len(host.length_B), 5):
    n = row // host.group_size
    for tokens in contexts(window, row)[1:]:
      ids = host.response_BT[row, tokens]
      hidden = plain_forward(
        window.params,
        model,
        host.prompt_NP[n : n + 1],
        host.prompt_mask_NP[n : n + 1],
        ids[None],
        np.ones((1, len(ids))),
      )
      logits = np.asarray(hidden)[0] @ embed.T
      expected = jax.nn.log_softmax(logits)[np.arange(len(ids)), ids]
      own = host.kind_BT[row, tokens] == POLICY
      np.testing.assert_allclose(
        logp_BT[row, tokens][own], np.asarray(expected)[own], atol=2e-5
      )
      seen += own.sum()
  assert seen > 10


def test_without_anything_to_forget_it_is_the_task(Played):
  """E0: a window of all turns of an episode changes no token."""
  task = KeyDoor()
  plain = Played(task, TURNS, size=60)
  wide = Played(MemoryWindow(task, turns=9), TURNS, size=60)
  for name in ('response_BT', 'kind_BT', 'turn_BT', 'logp_behaviour_BT'):
    np.testing.assert_array_equal(
      getattr(plain.host, name), getattr(wide.host, name)
    )
  assert plain.host.context_BT is None and not wide.host.context_BT.any()


@dataclasses.dataclass(frozen=True)
class Forgetful(EnvironmentTask, Environment):
  """Forgets with the observation and the history that it is given."""

  observation: str = 'a'
  history: tuple = ()
  rewrites: bool = True
  alphabet = 'ab'

  @property
  def traits(self):
    return TaskTraits(rewrites=self.rewrites)

  def make(self, example):
    return self

  def reset(self, seed):
    return Reply('b')

  def step(self, action):
    return Reply(self.observation, forget=True, history=self.history)


@pytest.mark.parametrize(
  ('task', 'words'),
  [
    (Forgetful(rewrites=False), 'the task has rewrites = False'),
    (Forgetful(observation=''), 'forget = True with an empty observation'),
    (Forgetful(history=((1, None),)), 'history has turn 1 of 1'),
    (Forgetful(history=((0, 1),)), 'has not pairs of a turn and a text'),
  ],
)
def test_what_cannot_be_forgotten_fails(task, words, Played):
  """Only the episode fails, with the reason."""
  played = Played(task, TURNS, size=30, num_prompts=1)
  assert all(words in outcome.error for outcome in played.outcomes)


def test_an_episode_may_forget_at_once(Played):
  """There is nothing before it but the prompt."""

  class Fresh(Forgetful):
    def reset(self, seed):
      return Reply('b', forget=True)

  played = Played(Fresh(), TURNS, size=30, num_prompts=1)
  assert all(outcome.error is None for outcome in played.outcomes)


def test_one_action_behind_a_new_context_is_trained(Played):
  """Every token of the policy has mask 1; what is repeated has 0."""
  played = Played(Forgetful(), TURNS, size=30, num_prompts=1)
  host = played.host
  np.testing.assert_array_equal(host.mask_BT > 0, host.kind_BT == POLICY)
  begins = host.context_BT == np.arange(30)[None]
  late = begins & (host.turn_BT > 0)
  assert late.sum() > 5 and (host.kind_BT[late] == ENVIRONMENT).all()


def test_thoughts_are_not_read_again():
  """Only what follows the last end of one; all turns, without a limit."""

  class Echo(Forgetful):
    def step(self, action):
      return Reply(f'[{action[-1]}]')

  task = MemoryWindow(Echo(rewrites=False), None, thoughts_end='/')
  episode = task.make(task.example('train', 0))
  assert episode.reset(0) == Reply('b')
  assert episode.step('u') == Reply('[u]')
  history = ((0, None), (1, 'c'))
  assert episode.step('a/b/c') == Reply('[c]', forget=True, history=history)
  history = (*history, (2, None))
  assert episode.step('d') == Reply('[d]', forget=True, history=history)


@pytest.mark.parametrize('first', [0, 1])
def test_contexts_of_a_chat_are_those_of_its_template(first):
  """Turns as they were; after the prompt, which opens a turn, an empty one."""
  tokenizer = type('T', (), {'eos_ids': (9,)})()
  tokenizer.encode = lambda text: [ord(x) for x in text]
  form = TurnFormat(tokenizer, TURNS, (1, 2), (9,), (3,))
  turns = [([], [10, 9])]
  turns.append(([1, 2, 50, 3], [11]))  # cut, so that the next one closes it
  turns.append(([9, 1, 2, 60, 3], [12, 9]))
  history = [(n, None) for n in range(first, 3)]
  empty = [9] if first else [10, 9]
  assert form.again(turns, history) == [
    *(*empty, 1, 2, 50, 3, 11, 9, 1, 2, 60, 3, 12, 9)
  ]
  # Turn 1, which was cut, is left out: turn 0 has its own end.
  parts = [(0, None), (2, None)]
  assert form.again(turns, parts) == [10, 9, 1, 2, 60, 3, 12, 9]
  assert form.again(turns, [(0, 'A')]) == [65, 9]
  assert form.again(turns, [(2, 'A')]) == [9, 1, 2, 60, 3, 65, 9]
  with pytest.raises(IndexError, match='history has turn 3 of 3'):
    form.again(turns, [(3, None)])


@pytest.mark.parametrize('ends', [0, 1])
def test_the_turn_before_an_observation_has_one_end(ends):
  """That which is read again, whether or not the last one was cut."""

  def encode(text):
    return [ord(x) for x in text]

  tokenizer = SimpleNamespace(eos_ids=(9,), encode=encode)
  form = TurnFormat(tokenizer, TURNS, (1, 2), (9,), (3,))
  actions = [[10], [11]]
  actions[ends].append(9)
  player = SimpleNamespace(
    ids=[([], actions[0]), ([*form.closing * ends, 1, 2, 50, 3], actions[1])],
    acts=lambda: True,
    remembers=lambda: [(0, None)],
    heard=lambda: 'A',
    episode=SimpleNamespace(cut=False),
    left_out=0,
    begun=True,
  )
  finished, room = bool(ends), 99
  turns = SimpleNamespace(_format=form, max_turns=9)
  found = TurnTaking.next_ids(turns, player, 2, finished, room)
  assert found == ([10, 9, 1, 2, 65, 3], True)


def test_messages_that_are_read_again_are_no_new_ones():
  """So what tokens are part of, as the task says it of a row, is not passed."""
  task = NarratedKeyDoor()
  window = MemoryWindow(task)
  assert window.example('train', 3) == task.example('train', 3)
  for name in ('row_inputs_device', 'step_device'):
    assert task.supports(name) and not window.supports(name)


def test_windows_of_what_cannot_have_one_are_refused():
  """Before anything is played."""
  for task, words in (
    (Arithmetic(), 'Arithmetic is not an environment'),
    (OpenSpiel('kuhn_poker'), 'OpenSpiel has several players'),
    (MemoryWindow(KeyDoor()), 'MemoryWindow rewrites contexts itself'),
  ):
    with pytest.raises(ValueError, match=words):
      MemoryWindow(task)
  with pytest.raises(ValueError, match='forgets nothing'):
    MemoryWindow(KeyDoor(), turns=None)
  task = MemoryWindow(KeyDoor())
  limits = {'turns': TURNS, 'slots': None, 'speculative': None}
  method = Method(rollout=ReflectedClones(texts=('a',)))
  with pytest.raises(
    ValueError, match='ReflectedClones repeats episodes, but Memory'
  ):
    check(task, type('Rollout', (), limits)(), method)


def test_long_contexts_are_attended_in_spans(plain_forward, tiny):
  """E1: more queries than one block, three contexts, two samples a prompt."""
  cfg, params = tiny.CFG, tiny.params()
  rng, T = np.random.default_rng(0), 300
  prompt, response = (
    rng.integers(0, cfg.vocab_size, shape) for shape in ((1, 4), (2, T))
  )
  starts = np.array([[0, 60, 170], [0, 200, 290]])
  context = np.stack(
    [row[np.searchsorted(row, np.arange(T), 'right') - 1] for row in starts]
  )
  ones = np.ones((2, T), np.float32)
  found = transformer.forward(
    params,
    cfg,
    prompt,
    ones[:1, :4],
    response,
    ones,
    context_BT=jnp.asarray(context),
  )
  for b, row in enumerate(starts):
    for start, end in zip(row, [*row[1:], T], strict=True):
      part = response[b : b + 1, start:end]
      expected = plain_forward(
        params, cfg, prompt, ones[:1, :4], part, np.ones(part.shape)
      )
      np.testing.assert_allclose(
        found[b, start + 1 : end], expected[0, 1:], atol=2e-5
      )


def test_a_turn_is_read_in_its_own_message(Played):
  """E1: prompt and message only; what is drawn there is what is scored."""
  task = Reworded(
    KeyDoor(), message='{observation}', line='', opening='', closing=''
  )
  played = Played(task, TURNS, size=SIZE)
  host, seen = played.host, 0
  for row in range(len(host.length_B)):
    told = played.episodes.shown()(row)['turns']
    spoken = played.turn_texts(row, POLICY)
    for k, tokens in enumerate(contexts(played, row)[1:], start=1):
      ids = host.response_BT[row, tokens]
      own = host.kind_BT[row, tokens] == POLICY
      assert played.tokenizer.decode(ids[~own]) == told[k]['observation']
      assert played.tokenizer.decode(ids[own]) == spoken[k]
      seen += 1
  assert seen > 10
  own = host.kind_BT == POLICY
  np.testing.assert_allclose(
    logp_of(played)[own], host.logp_behaviour_BT[own], atol=2e-5
  )
