"""Rollout batches: dynamic sampling, serials, failing verifiers, selectors.

The model is replaced by a table, so that every reward is known.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.learning.batch import make_batch
from rl_jax.method import Method
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts import collect
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import Draw
from rl_jax.rollouts.wrappers.guided import HintGuided
from rl_jax.rollouts.wrappers.staged_hints import StagedHints
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import Example, Task
from rl_jax.verification.pool import VerifierPool

G = 3
KEY = jax.random.key(0)
FILTERED = Method(
  credit=(credit.GroupCenter(),),
  losses=(losses.Reinforce(),),
  aggregation=TokenMean(),
  group_filter=selection.ZeroVariance(),
)
PLAIN = FILTERED.replace(group_filter=None)


@dataclasses.dataclass(frozen=True)
class Letters(Task):
  """'y' is right, 'n' wrong; 'e' raises, 'i' is not a number, '+' lacks
  a part.
  """

  reward_weights = {'outcome': 2.0, 'length': 0.0}
  alphabet = 'ynei+'

  def num_prompts(self, split):
    """Six prompts."""
    return 6

  def example(self, split, index):
    """Prompts of different lengths: one character up to four."""
    return Example(prompt='+' * (1 + index % 4), answer='y', id=index)

  def hinted(self, example):
    """One character more."""
    return self.hinted_by(example, 0.25)

  def hinted_by(self, example, share):
    """One to four characters more."""
    hint = '+' * round(4 * share)
    return dataclasses.replace(example, prompt=hint + example.prompt)

  def reward(self, example, response):
    """One weighted component and one that is only reported."""
    if response == 'e':
      raise KeyError('a bug')
    outcome = float('nan') if response == 'i' else float(response == 'y')
    if response == '+':  # without a weighted component
      return {'outcome': 1.0}
    return {'outcome': outcome, 'length': 1.0}


class InOrder:
  """Prompts 0, 1, 2, ...: remembers what it observed."""

  def init(self, num_prompts):
    """Position, and the last rewards."""
    return {'next': jnp.int32(0), 'rewards': jnp.zeros((2, G))}

  def select(self, state, key, count):
    """The next ones."""
    ids = (state['next'] + jnp.arange(count)) % 6
    return ids, {**state, 'next': state['next'] + count}

  def observe(self, state, ids, summary):
    """Keeps their rewards."""
    return {**state, 'rewards': summary.reward_NG}


class Watched(TextVerifier):
  """Says what is dispatched and judged, and how many rows."""

  def __init__(self):
    super().__init__(VerifierPool(Letters(), 0))
    self.seen = []

  def play(self, engine, params, traj, key, examples):
    """Dispatched."""
    self.seen.append(('play', len(examples)))
    return super().play(engine, params, traj, key, examples)

  def outcomes(self, traj, examples, texts, due_B=None):
    """Judged."""
    self.seen.append(('judge', len(examples)))
    return super().outcomes(traj, examples, texts, due_B)


def run(
  answers, method=PLAIN, max_rounds=4, first_serial=10, limit=4, **changes
):
  """collect() of 2 prompts; answers: the letters of group 0, 1, ... drawn."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  tokenizer = CharTokenizer(Letters.alphabet)
  table = np.full((len(answers), G, 2), tokenizer.eos_ids[0], np.int32)
  for group, letters in enumerate(answers):
    table[group, :, 0] = tokenizer.encode(letters)
  table = jax.device_put(table)

  def generate(params, traj, key):
    group_B, sample_B = traj.row_id_B2.T
    on = jnp.ones(traj.mask_BT.shape)
    return traj.replace(
      response_BT=table[group_B - first_serial, sample_B],
      mask_BT=on,
      kind_BT=on.astype(jnp.int32),
      length_B=jnp.full_like(traj.length_B, 2),
      finished_B=jnp.ones_like(traj.finished_B),
    )

  config = bandit.get_config(method.replace(selector=InOrder()))
  rollout = dataclasses.replace(
    config.rollout,
    num_prompts=2,
    group_size=G,
    max_prompt_tokens=4,
    max_rounds=max_rounds,
    **changes,
  )
  engine = make_engine(
    None,
    decoding.SamplingConfig(),
    EngineConfig(group_size=G, max_response_tokens=2),
    mesh,
  )
  prompts = PromptSet(Letters(), 'train', tokenizer, limit, 'skip')
  collector = collect.Collector(
    rollout,
    engine=dataclasses.replace(engine, generate=jax.jit(generate)),
    score=lambda params, traj, method: (traj, {'scored': 1}),
    prompts=prompts,
    selector=HostSelector(InOrder(), len(prompts), KEY),
    judging=collect.Judging(Watched()),
    key=KEY,
  )
  with jax.transfer_guard('disallow'):
    *result, length_NG = collector.collect(
      Draw(None, method.as_arrays(), first_serial, policy_version=7)
    )
  assert len(length_NG) == 2
  np.testing.assert_array_equal(length_NG.ravel(), result[0].length_B)
  return *result, collector


def serials(traj):
  """Group serials relative to the first one, a row each."""
  return (np.asarray(traj.row_id_B2[:, 0]) - 10).tolist()


def test_one_round_without_a_filter():
  """Weighted rewards, all components, texts, serials and versions."""
  traj, metrics, rounds, collector = run(['yny', 'nnn'])
  np.testing.assert_array_equal(traj.reward_B, [2, 0, 2, 0, 0, 0])
  np.testing.assert_array_equal(traj.rewards['outcome'], [1, 0, 1, 0, 0, 0])
  np.testing.assert_array_equal(traj.rewards['length'], np.ones(6))
  assert serials(traj) == [0, 0, 0, 1, 1, 1]
  assert set(traj.policy_version_B.tolist()) == {7}
  assert metrics == {'scored': 1} and len(rounds) == 1
  assert list(rounds[0].texts) == list('ynynnn') and rounds[0].tokens == 12
  assert [e.id for e in rounds[0].examples] == [0, 1]
  np.testing.assert_array_equal(
    collector.selector.state['rewards'], [[2, 0, 2], [0, 0, 0]]
  )


@pytest.mark.parametrize('bad', ['e', 'i', '+'])
def test_a_failing_verification_costs_only_its_sample(bad):
  """valid 0 and weight 0; the mean of its group is that of the others.

  Rewards (2, 0) of the two valid rows: centred (1, -1), the failed row 0.
  """
  traj, _, (done,), collector = run(['yn' + bad, 'nyy'])
  np.testing.assert_array_equal(traj.valid_B, [1, 1, 0, 1, 1, 1])
  np.testing.assert_array_equal(traj.weight_B, traj.valid_B)
  batch, _, metrics = make_batch(PLAIN, traj, {})
  np.testing.assert_allclose(
    batch.advantages_BT[:, 0], [1, -1, 0, -4 / 3, 2 / 3, 2 / 3], rtol=1e-6
  )
  np.testing.assert_allclose(metrics['rollout/valid_fraction'], 5 / 6)
  assert [error is not None for error in done.errors] == [0, 0, 1, 0, 0, 0]
  # The selector observes that it is unknown, not that it is wrong.
  np.testing.assert_array_equal(
    collector.selector.state['rewards'], [[2, 0, np.nan], [0, 2, 2]]
  )


@pytest.mark.parametrize('method', [PLAIN, FILTERED])
def test_a_part_is_judged_when_the_next_is_dispatched(method):
  """E0: as in one part, dropped groups and failed samples included."""
  answers = ['yyy', 'yne', 'nnn', 'ynn']
  traj, metrics, rounds, one = run(answers, method)
  found = run(answers, method, parts=2)
  count = len(rounds)
  assert one.runner.seen == [('play', 2), ('judge', 2)] * count
  in_turn = [('play', 1), ('play', 1), ('judge', 1), ('judge', 1)]
  assert found[3].runner.seen == in_turn * count

  def same(a, b):
    return jax.tree.map(np.testing.assert_array_equal, a, b)

  same(found[:2], (traj, metrics))

  def plain(r):
    return vars(r) | {'texts': list(r.texts), 'shown': None}

  same([*map(plain, found[2])], [*map(plain, rounds)])
  same(found[3].selector.state, one.selector.state)


def test_dynamic_sampling_fills_the_batch():
  """Groups 0, 2 and 4 agree; 1 and 3 make the batch after two rounds."""
  traj, metrics, rounds, _ = run(
    ['yyy', 'yny', 'nnn', 'ynn', 'yyy', 'yny'], FILTERED
  )
  assert serials(traj) == [1, 1, 1, 3, 3, 3]
  np.testing.assert_array_equal(traj.reward_B, [2, 0, 2, 2, 0, 0])
  np.testing.assert_array_equal(traj.weight_B, np.ones(6))
  assert len(rounds) == 2 and metrics == {'scored': 1}
  # Prompts of 1 to 4 characters were brought to one width, left-padded.
  assert traj.prompt_NP.shape == (2, 4)
  np.testing.assert_array_equal(
    traj.prompt_mask_NP, [[0, 0, 1, 1], [1, 1, 1, 1]]
  )
  assert traj.prompt_id_N.tolist() == [1, 3]


def test_rounds_may_be_larger_than_the_batch():
  """E0: the first two kept groups of rounds of three; one more is dropped."""
  answers = ['yyy', 'yny', 'nnn', 'ynn', 'nyn', 'yyn']
  traj, _, rounds, collector = run(answers, FILTERED, round_prompts=3)
  assert serials(traj) == [1, 1, 1, 3, 3, 3] and len(rounds) == 2
  assert traj.prompt_id_N.tolist() == [1, 3]
  assert [len(one.examples) for one in rounds] == [3, 3]
  traj, _, rounds, _ = run(answers[3:], FILTERED, round_prompts=3)
  assert serials(traj) == [0, 0, 0, 1, 1, 1] and len(rounds) == 1
  # Too few: the spare one is of the second round's numbering, with weight 0.
  answers = ['yyy'] * 5 + ['yny']
  traj, _, rounds, _ = run(answers, FILTERED, max_rounds=2, round_prompts=3)
  assert serials(traj) == [5, 5, 5, 0, 0, 0]
  batch, _, _ = make_batch(FILTERED, traj, {})
  np.testing.assert_array_equal(batch.weight_B, [1, 1, 1, 0, 0, 0])


def test_a_redrawn_prompt_gets_a_new_serial():
  """Round 4 draws prompts 0 and 1 again, as groups 6 and 7."""
  traj, _, rounds, _ = run(['yyy'] * 6 + ['yny', 'nyn'], FILTERED)
  assert len(rounds) == 4
  assert traj.prompt_id_N.tolist() == [0, 1]
  assert serials(traj) == [6, 6, 6, 7, 7, 7]


def test_missing_groups_have_weight_zero():
  """After max_rounds: one kept group, one spare that trains nothing."""
  traj, _, rounds, _ = run(['yyy', 'nnn', 'yny', 'yyy'], FILTERED, max_rounds=2)
  assert len(rounds) == 2
  assert serials(traj)[:3] == [2, 2, 2]
  batch, _, metrics = make_batch(FILTERED, traj, {})
  np.testing.assert_array_equal(batch.weight_B, [1, 1, 1, 0, 0, 0])
  assert metrics['batch/kept_group_fraction'] == 0.5
  assert metrics['batch/trained_tokens'] == 6


def test_a_round_in_which_every_verification_fails_is_only_lost():
  """It reports no components at all; the next round continues."""
  traj, _, rounds, _ = run(['eee', 'eie', 'yny', 'nyn'], FILTERED)
  assert len(rounds) == 2 and serials(traj) == [2, 2, 2, 3, 3, 3]
  np.testing.assert_array_equal(traj.rewards['outcome'], [1, 0, 1, 0, 1, 0])
  traj, _, _, _ = run(['eee', 'eee'])
  batch, _, metrics = make_batch(PLAIN, traj, {})
  assert not batch.weight_B.any() and not batch.advantages_BT.any()
  assert metrics['rollout/valid_fraction'] == 0


GUIDED = PLAIN.replace(rollout=HintGuided())


def test_hinted_rows_join_the_groups_that_failed():
  """Prompt 1 fails; the second round (groups 2, 3) has the hints. Rows of
  prompt 0 with a hint are there, but invalid and without weight."""
  traj, metrics, rounds, collector = run(['yny', 'nnn', 'yyy', 'nyn'], GUIDED)
  assert serials(traj) == [0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3]
  assert traj.group_size == 6 and len(rounds) == 2
  np.testing.assert_array_equal(traj.valid_B, [1, 1, 1] + [0] * 3 + [1] * 6)
  np.testing.assert_array_equal(traj.weight_B, traj.valid_B)
  assert not traj.mask_BT[3:6].any() and traj.mask_BT[9:].all()
  np.testing.assert_array_equal(
    traj.extras['foreign_B'], [0, 0, 0, 1, 1, 1] * 2
  )
  np.testing.assert_array_equal(traj.reward_B[6:], [0, 0, 0, 0, 2, 0])
  # Under the prompt without hint: one character, and two.
  np.testing.assert_array_equal(traj.prompt_mask_NP, [[0, 1], [1, 1]])
  assert [e.prompt for e in rounds[1].examples] == ['++', '+++']
  assert metrics == {'scored': 1}
  # Rewards are reported without the hinted rows: 2, 0, 2 and 0, 0, 0.
  _, _, report = make_batch(GUIDED, traj, {})
  np.testing.assert_allclose(report['reward/mean'], 4 / 6, rtol=1e-6)
  # The selector hears of the prompts themselves, not of hints.
  np.testing.assert_array_equal(
    collector.selector.state['rewards'], [[2, 0, 2], [0, 0, 0]]
  )


def test_a_hint_that_makes_a_prompt_too_long_is_left_out(caplog):
  """Limit 2: prompt 0 becomes 2 tokens, prompt 1 would become 3."""
  traj, _, rounds, _ = run(['nnn', 'nnn', 'yyy', 'yyy'], GUIDED, limit=2)
  assert [e.prompt for e in rounds[1].examples] == ['++', '++']
  np.testing.assert_array_equal(traj.valid_B, [1] * 9 + [0] * 3)
  np.testing.assert_array_equal(traj.weight_B, traj.valid_B)
  assert 'Letters train[1]: the prompt has 3 tokens' in caplog.text


def test_hints_that_are_always_too_long_are_refused_at_start():
  """Named in mode 'error'; of 'skip' only where none is left."""
  tokenizer = CharTokenizer(Letters.alphabet)

  def letters(limit, mode):
    return PromptSet(Letters(), 'train', tokenizer, limit, mode)

  GUIDED.rollout.check(CheckContext(prompts=letters(5, 'error')))
  with pytest.raises(ValueError, match='the prompt has 5 tokens'):
    GUIDED.rollout.check(CheckContext(prompts=letters(4, 'error')))
  GUIDED.rollout.check(CheckContext(prompts=letters(2, 'skip')))
  with pytest.raises(ValueError, match='none of 2 changed prompts'):
    GUIDED.rollout.check(CheckContext(prompts=letters(1, 'skip')))


def test_without_failure_there_is_no_hinted_round():
  """E0: the advantages are those of plain groups."""
  traj, _, rounds, _ = run(['yny', 'nny'], GUIDED)
  plain, _, _, _ = run(['yny', 'nny'])
  assert len(rounds) == 1 and traj.group_size == 6
  batch, _, _ = make_batch(GUIDED, traj, {})
  expected, _, _ = make_batch(PLAIN, plain, {})
  found = np.asarray(batch.advantages_BT).reshape(2, 6, -1)
  np.testing.assert_array_equal(
    found[:, :3].reshape(6, -1), expected.advantages_BT
  )
  assert not found[:, 3:].any()


def test_hints_and_a_filter_combine():
  """Round 1: prompt 0 agrees even so, prompt 1 is saved by a hint; round 2:
  prompt 2 needs none. Two kept groups."""
  traj, _, rounds, _ = run(
    ['yyy', 'nnn', 'yyy', 'ynn', 'yny', 'yyy'],
    GUIDED.replace(group_filter=selection.ZeroVariance()),
  )
  assert len(rounds) == 3
  assert serials(traj) == [1, 1, 1, 3, 3, 3, 4, 4, 4, 4, 4, 4]


STAGED = PLAIN.replace(rollout=StagedHints())


def test_hints_grow_until_a_group_is_right():
  """Prompt 1 fails without a hint and with one character, not with two."""
  answers = ['yny', 'nnn', 'yyy', 'nnn', 'yyy', 'nyn']
  traj, metrics, rounds, collector = run(answers, STAGED)
  assert serials(traj) == [0, 0, 0, 5, 5, 5]
  prompts = [[e.prompt for e in one.examples] for one in rounds]
  assert prompts == [['+', '++'], ['++', '+++'], ['+++', '++++']]
  # Under the prompts from which they were sampled: one character, and four.
  mask_NP = [[0, 0, 0, 1], [1, 1, 1, 1]]
  np.testing.assert_array_equal(traj.prompt_mask_NP, mask_NP)
  np.testing.assert_array_equal(traj.reward_B, [2, 0, 2, 0, 2, 0])
  np.testing.assert_array_equal(traj.extras['foreign_B'], [0] * 3 + [1] * 3)
  np.testing.assert_array_equal(traj.valid_B, 1)
  assert traj.group_size == G and metrics == {'scored': 1}
  # Neither the selector nor reports of rewards hear of hints: 2, 0, 2.
  told = collector.selector.state['rewards']
  np.testing.assert_array_equal(told, [[2, 0, 2], [0, 0, 0]])
  _, _, report = make_batch(STAGED, traj, {})
  np.testing.assert_allclose(report['reward/mean'], 4 / 3, rtol=1e-6)


def test_the_last_hint_that_fits_is_kept():
  """Prompt 0 never succeeds: group 6 of the fourth round. Of prompt 1 three
  characters are too many for the limit of four: group 5 of the third."""
  traj, _, rounds, _ = run(['nnn'] * 8, STAGED)
  assert serials(traj) == [6, 6, 6, 5, 5, 5] and len(rounds) == 4
  assert [e.prompt for e in rounds[3].examples] == ['++++', '++']
  np.testing.assert_array_equal(traj.prompt_mask_NP, 1)


def test_without_failure_there_are_no_stages():
  """E0: rows and advantages are those of plain groups."""
  (traj, _, rounds, _), (plain, *_) = (
    run(['yny', 'nny'], method) for method in (STAGED, PLAIN)
  )
  assert len(rounds) == 1 and not traj.extras['foreign_B'].any()
  batch, expected = (make_batch(PLAIN, x, {})[0] for x in (traj, plain))
  for name in ('response_BT', 'advantages_BT', 'prompt_NP', 'row_id_B2'):
    np.testing.assert_array_equal(getattr(batch, name), getattr(expected, name))
