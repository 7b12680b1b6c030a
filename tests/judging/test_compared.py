"""Policy against opponent, by preferences that no scalar reward can express.

Rock beats scissors, scissors beat paper, paper beats rock; equals are even. The
model is replaced by a table, the judge by the rules.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.judging.judges import Asked, Judges
from rl_jax.judging.learned import LearnedRewards
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.learning.batch import make_batch
from rl_jax.models.judge_source import Judge
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.ops.rivals import BEATS
from rl_jax.rollouts import collect
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import Draw
from rl_jax.rollouts.wrappers import Against
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import Example, Task
from rl_jax.verification.pool import VerifierPool

G, FIRST = 3, 10
KEY = jax.random.key(0)
STRONGER = {('r', 's'), ('s', 'p'), ('p', 'r')}


def beats(a, b):
  """1, 1/2 or 0."""
  return 0.5 if a == b else float((a, b) in STRONGER)


@dataclasses.dataclass(frozen=True)
class Moves(Task):
  """'e' cannot be verified; the task itself rewards nothing."""

  reward_weights = {'outcome': 0.0}
  alphabet = 'rpse'

  def num_prompts(self, split):
    return 2

  def example(self, split, index):
    return Example(prompt='r', answer='', id=index)

  def reward(self, example, response):
    if response == 'e':
      raise KeyError('a bug')
    return {'outcome': 0.0}


class InOrder:
  """All prompts; keeps the rewards that it observes."""

  def init(self, num_prompts):
    return {'reward': jnp.zeros((num_prompts, G))}

  def select(self, state, key, count):
    return jnp.arange(count), state

  def observe(self, state, ids, summary):
    return {'reward': summary.reward_NG}


class Rules:
  """A judge of pairs, and how many questions it was asked."""

  def __init__(self, **fields):
    fields = {'name': 'j', 'template': '{first}{second}'} | fields

    def encode(question):
      return list(question.text)

    asked = Asked(Judge(**fields), None, encode, self.read)
    self.judges, self.questions = Judges([asked]), []

  def read(self, params, ids):
    self.questions += [''.join(x) for x in ids]
    return [beats(x[0], x[-1]) for x in ids]


def run(method, own, other, **parts):
  """collect() of 2 prompts; own, other: letters of each group drawn."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  tokenizer = CharTokenizer(Moves.alphabet)
  table = np.full((4, G, 2), tokenizer.eos_ids[0], np.int32)
  for group, letters in enumerate([*own, *other]):
    table[group, :, 0] = tokenizer.encode(letters)
  table = jax.device_put(table)

  def generate(params, traj, key):
    group_B, sample_B = traj.row_id_B2.T
    on = jnp.ones(traj.mask_BT.shape)
    return traj.replace(
      response_BT=table[group_B - FIRST, sample_B],
      mask_BT=on,
      kind_BT=on.astype(jnp.int32),
      length_B=jnp.full_like(traj.length_B, 2),
      finished_B=jnp.ones_like(traj.finished_B),
    )

  engine = make_engine(
    None,
    decoding.SamplingConfig(),
    EngineConfig(group_size=G, max_response_tokens=2),
    mesh,
  )
  engine = dataclasses.replace(engine, generate=jax.jit(generate))
  engine = dataclasses.replace(engine, variant=lambda transforms: engine)
  config = bandit.get_config(method)
  prompts = PromptSet(Moves(), 'train', tokenizer, 4, 'skip')
  collector = collect.Collector(
    dataclasses.replace(
      config.rollout, num_prompts=2, group_size=G, max_prompt_tokens=4
    ),
    engine=engine,
    score=lambda params, traj, method: (traj, {}),
    prompts=prompts,
    selector=HostSelector(InOrder(), len(prompts), KEY),
    judging=collect.Judging(TextVerifier(VerifierPool(Moves(), 0)), **parts),
    key=KEY,
  )
  method = method.as_arrays()
  with jax.transfer_guard('disallow'):
    traj, _, rounds, _ = collector.collect(Draw(None, method, FIRST, 0))
  return traj, rounds, collector


OWN, OTHER = ('rps', 'rrr'), ('pps', 'ppp')
# Against p, p, s: r loses twice and wins once, s wins twice and is even once.
WINS = [1 / 3, 1 / 3, 5 / 6, 0, 0, 0]
LOSSES = [1 / 2, 1 / 2, 1 / 2, 1, 1, 1]  # of the opponent, against r, p, s


@pytest.mark.parametrize('name', ['nash_md', 'nash_ema', 'pairwise_rl'])
def test_the_policy_is_judged_against_the_opponent(toy, name):
  """E1: not within its own side, where r, p, s are even and r, r, r, too."""
  method = toy.get_method(name)
  rules = Rules()
  traj, rounds, collector = run(method, OWN, OTHER, judges=rules.judges)
  expected = np.reshape([WINS[:3], LOSSES[:3], WINS[3:], LOSSES[3:]], -1)
  np.testing.assert_allclose(traj.rewards['j'], expected, atol=1e-6)
  np.testing.assert_allclose(traj.reward_B, expected, atol=1e-6)
  # Every pair of policy and opponent in both orders, and no others.
  assert len(rules.questions) == 2 * 2 * G * G
  first, second = rounds
  np.testing.assert_allclose(first.reward_NG.ravel(), WINS, atol=1e-6)
  np.testing.assert_allclose(second.reward_NG.ravel(), LOSSES, atol=1e-6)
  known = collector.selector.state['reward']
  np.testing.assert_allclose(known.ravel(), WINS, atol=1e-6)
  assert second.metrics['rollout/unread_judgements'] == 0


def test_the_reward_of_nash_md_by_hand(toy):
  """E1: P - 1/2; a policy that always loses has -1/2 and not 0."""
  method = toy.get_method('nash_md')
  method = method.replace(shaping=method.shaping[:1])  # without the KL
  traj, *_ = run(method, OWN, OTHER, judges=Rules().judges)
  batch, *_ = make_batch(method, traj, {})
  found = batch.advantages_BT[:, 0].reshape(2, 2, G)[:, 0].ravel()
  np.testing.assert_allclose(found, np.array(WINS) - 0.5, atol=1e-6)


def test_no_reward_expresses_it(toy):
  """With rewards, a side's differences would be the same for every rival."""
  method = toy.get_method('nash_md')
  traj, *_ = run(method, OWN, OTHER, judges=Rules().judges)
  found = np.asarray(traj.extras[BEATS])[:G, G:]
  np.testing.assert_array_equal(found, [[0, 0, 1], [0.5, 0.5, 0], [1, 1, 0.5]])
  order = found.argsort(axis=0)
  assert (order[:, 0] != order[:, 2]).any()


@pytest.mark.parametrize(
  'trained, count, expected',
  [
    # r, p, s and p, p, s: against the other five, in their own group of six.
    ('both', 2 * 15, [0.4, 0.4, 0.7, 0.4, 0.4, 0.7]),
    ('opponent', 2 * 3, [0.5, 0.5, 0.5, 0.25, 0.25, 1.0]),
  ],
)
def test_rivals_are_those_that_are_trained(toy, trained, count, expected):
  """E1: XPO compares both sides, IPO-MD the samples of the mixture."""
  method = toy.get_method('xpo').replace(rollout=Against(trained=trained))
  rules = Rules()
  traj, *_ = run(method, OWN, OTHER, judges=rules.judges)
  assert len(rules.questions) == 2 * count
  np.testing.assert_allclose(traj.rewards['j'][:6], expected, atol=1e-6)


def test_a_row_that_failed_is_no_rival(toy):
  """E1: r against s and p, s against both; the failed rows are invalid."""
  method = toy.get_method('nash_md')
  own, other = ('rse', 'rrr'), ('spe', 'ppp')
  traj, rounds, _ = run(method, own, other, judges=Rules().judges)
  np.testing.assert_allclose(traj.rewards['j'][:3], [0.5, 0.75, 0], atol=1e-6)
  np.testing.assert_array_equal(traj.valid_B[:6], [1, 1, 0, 1, 1, 0])
  assert rounds[0].errors[2] is not None and rounds[1].errors[2] is not None
  assert np.isnan(rounds[0].reward_NG[0, 2])


def test_a_question_that_is_too_long_costs_its_rows(toy):
  """The round records the reason, too."""
  rules = Rules(max_tokens=1)
  method = toy.get_method('nash_md')
  traj, rounds, _ = run(method, OWN, OTHER, judges=rules.judges)
  assert not np.asarray(traj.valid_B).any()
  assert "judge 'j': more than 1 tokens" in rounds[0].errors[0]


def test_groups_are_judged_in_one_question(toy):
  """A judge of groups sees both sides, too."""
  asked = []

  def read(params, ids):
    asked.extend(''.join(x) for x in ids)
    named = ', '.join(f'"{i}": {i}' for i in range(1, 2 * G + 1))
    return ['{' + named + '}' for _ in ids]

  source = Judge(name='j', template='{responses}', reads='text')
  judges = Judges([Asked(source, None, lambda q: list(q.text), read)])
  traj, *_ = run(toy.get_method('nash_md'), OWN, OTHER, judges=judges)
  assert len(asked) == 2 and asked[0].count('[') == 2 * G
  values = sorted(np.asarray(traj.rewards['j'])[: 2 * G].tolist())
  assert values == [1, 2, 3, 4, 5, 6]


def test_judges_of_single_responses_are_as_before(toy):
  """E0: each side is judged when it is there; rewards are compared by size."""
  source = Judge(name='j', template='{response}')

  def read(params, ids):
    return ['rps'.index(x[0]) / 2 for x in ids]

  judges = Judges([Asked(source, None, lambda q: list(q.text), read)])
  traj, *_ = run(toy.get_method('nash_md'), OWN, OTHER, judges=judges)
  np.testing.assert_array_equal(traj.rewards['j'][:6], [0, 0.5, 1, 0.5, 0.5, 1])
  assert BEATS not in traj.extras


def test_learned_rewards_of_pairs_wait_too(toy):
  """They score the joined groups, those of single responses each side."""
  calls = []

  def single(traj):
    calls.append(('single', traj.group_size))
    return {'length': traj.length_B.astype(jnp.float32)}

  def compare(traj, kind):
    calls.append((kind, traj.group_size))
    return {'learned': jnp.arange(len(traj.length_B), dtype=jnp.float32)}

  learned = LearnedRewards(
    weights={'learned': 2.0, 'length': 0.5}, single=single, compare=compare
  )
  traj, *_ = run(toy.get_method('nash_md'), OWN, OTHER, learned=learned)
  assert calls == [('single', G), ('single', G), ('across', 2 * G)]
  np.testing.assert_allclose(traj.reward_B, 2 * np.arange(12) + 1)
