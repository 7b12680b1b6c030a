"""Episodes played one after the other: no slots, no cache, no queue.

The reference of tests (tier E2): tokens are drawn from a forward pass over all
that their player sees, and each call is made when the one before is answered.
Load by the fixture `plain_episodes`.
"""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import models, randomness
from rl_jax.decoding.generate import unfinished_rows
from rl_jax.decoding.sampling import SamplingConfig, sample_token
from rl_jax.decoding.turn_decode import opponents
from rl_jax.episodes.partners import NO_PARTNERS
from rl_jax.episodes.turn_arrays import turn_arrays
from rl_jax.runtime import processes
from rl_jax.types import ENVIRONMENT, PAD, POLICY
from rl_jax.verification.sessions import SessionPool


class PlainRow:
  """The tokens of a row, and where what it sees begins."""

  def __init__(self, size):
    self.ids = np.zeros(size, np.int32)
    self.kind = np.full(size, PAD)
    self.turn, self.context = np.full(size, -1), np.zeros(size, np.int32)
    self.logp = np.zeros(size, np.float32)
    self.length = self.turns = self.sees = 0
    self.finished = False

  def write(self, id_, kind, logp=0.0):
    """A token after the others, of the turn that is open."""
    place = self.length
    self.ids[place], self.kind[place], self.logp[place] = id_, kind, logp
    self.turn[place], self.context[place] = self.turns, self.sees
    self.length += 1


class PlainEpisodes:
  """The round of a `Played`; it has the fields that tests compare.

  sampling: those of Played. workers, seconds: of the pool.
  """

  def __init__(
    self,
    played,
    task,
    *,
    workers=0,
    seconds=10.0,
    partners=NO_PARTNERS,
    **sampling,
  ):
    eos_ids = played.tokenizer.eos_ids
    self._sampling = SamplingConfig(eos_ids=eos_ids, **sampling)
    self._records, self._turns = played.episodes, played.episodes.turns
    self._most = played.turns.max_turn_tokens
    self._size = played.host.response_BT.shape[1]
    traj = played.engine.start(*played.arrays, 0, 0)
    group_size, examples = traj.group_size, played.examples
    B = traj.length_B.shape[0]
    policies = [played.params]
    if 'policies' in played.params:
      policies.append(played.params['policies']['opponent'])
    seats = self._turns.seated(
      0, examples, group_size, slice(0, B), len(policies)
    )
    self._seats = []  # (player, its row, weights, key, place)
    self.rows = []
    for side, players in enumerate(seats):
      own = opponents(traj) if side else traj
      key_B = unfinished_rows(own, played.key, 1).key_B
      rows = [PlainRow(self._size) for _ in players]
      self.rows = self.rows or rows
      for n, player in enumerate(players):
        seat = (player, rows[n], policies[side], key_B[n], n // group_size)
        self._seats.append(seat)
    self._prompts = processes.read((traj.prompt_NP, traj.prompt_mask_NP))
    self._logits = jax.jit(functools.partial(_logits, played.model))
    games = {id(x.episode): x.episode for x, *_ in self._seats}
    with SessionPool(task, workers, seconds) as pool:
      for episode in games.values():
        if episode.failure is None:
          self._play(episode, functools.partial(partners.play_on, pool.ask))
    players = seats[0]
    self._end(played, task, players, group_size)

  def _play(self, episode, play_on):
    """A whole game; play_on: its environment, to the next turn of a player."""
    own = [seat for seat in self._seats if seat[0].episode is episode]
    play_on([episode])
    while not episode.over():
      seat = next(seat for seat in own if seat[0].acts())
      if not self._reads(*seat[:2]):
        break
      self._acts(*seat)
      play_on([episode])

  def _reads(self, player, row):
    """Puts what was said after the tokens; returns whether there is a turn."""
    if not row.length and self._begins(player):
      return True
    room = self._size - row.length
    ids, forgets = self._turns.next_ids(player, row.turns, row.finished, room)
    if forgets:
      row.sees = row.length
    for id_ in ids or ():
      row.write(id_, ENVIRONMENT)
    return ids is not None

  def _begins(self, player):
    """Returns whether nobody has had a turn: the prompt was all it heard."""
    return not player.episode.acted

  def _acts(self, player, row, params, key, n):
    """Draws the tokens of a turn, and takes it."""
    start = row.length
    most = min(start + self._most, self._size)
    row.finished = False
    while row.length < most and not row.finished:
      seen = np.zeros(self._size + 1, np.int32)
      count = row.length - row.sees
      seen[:count] = row.ids[row.sees : row.length]
      prompt_P, mask_P = (x[n] for x in self._prompts)
      logits_1V = self._logits(params, prompt_P, mask_P, seen, count)
      uniform_1 = randomness.token_uniform(key[None], jnp.array([row.length]))
      token, logp = sample_token(
        self._sampling.transform(logits_1V), uniform_1, self._sampling.greedy
      )
      row.write(int(token[0]), POLICY, float(logp[0]))
      row.finished = int(token[0]) in self._sampling.eos_ids
    row.turns += 1
    assert self._turns.act(player, row.ids[start : row.length])

  def _end(self, played, task, players, group_size):
    """The arrays and outcomes of the rows of the policy that is trained."""
    records = [self._records._record(player) for player in players]
    weights = [task.weights_of(example) for example in played.examples]
    self.turns = turn_arrays(records, weights, self._turns.max_turns)
    names = {'ids': 'response', 'kind': 'kind', 'turn': 'turn'}
    names |= {'context': 'context', 'logp': 'logp_behaviour'}
    arrays = {
      f'{name}_BT': np.stack([getattr(row, field) for row in self.rows])
      for field, name in names.items()
    }
    self.host = SimpleNamespace(
      **arrays,
      length_B=np.array([row.length for row in self.rows]),
      finished_B=np.array([record['finished'] for record in records]),
      mask_BT=(arrays['kind_BT'] == POLICY).astype(np.float32),
    )
    self.shown = [player.shown() for player in players]
    self.begun = [record['begun'] for record in records]
    self.failed = [record['failure'] is not None for record in records]


def _logits(cfg, params, prompt_P, mask_P, seen_T, count):
  """Logits [1, V] of the token after `count` ones that follow a prompt."""
  there_T = (jnp.arange(len(seen_T)) <= count).astype(jnp.float32)
  hidden_1TD = models.forward(
    params, cfg, prompt_P[None], mask_P[None], seen_T[None], there_T[None]
  )
  return models.logits(params, cfg, hidden_1TD[0, count][None])


def check_plain(played, task, **more):
  """The record of a `Played` is that of PlainEpisodes; E2 for log-probs.

  Tokens of rows whose episodes do not begin, which count nowhere, may differ.
  """
  plain = PlainEpisodes(played, task, **more)
  rows = plain.begun
  names = ('response_BT', 'kind_BT', 'length_B', 'finished_B', 'turn_BT')
  for name in (*names, 'mask_BT'):
    mine, other = getattr(plain.host, name), getattr(played.host, name)
    np.testing.assert_array_equal(mine[rows], other[rows], err_msg=name)
  if played.host.context_BT is not None:
    np.testing.assert_array_equal(plain.host.context_BT, played.host.context_BT)
  for name in ('reward_BK', 'calls_BK', 'state_BK', 'action_BK'):
    np.testing.assert_array_equal(
      getattr(plain.turns, name), getattr(played.host.turns, name), name
    )
  for row, shown in enumerate(plain.shown):
    assert played.episodes.shown()(row) == shown
    assert (played.outcomes[row].error is not None) == plain.failed[row]
  mine, other = (x.host.logp_behaviour_BT[rows] for x in (plain, played))
  np.testing.assert_allclose(mine, other, atol=1e-5)
