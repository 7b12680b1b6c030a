"""Samples beside the recorded response to their prompt."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.decoding.generate import start_trajectories
from rl_jax.judging.verifiers import token_inputs
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.preferences import RecordWins
from rl_jax.pieces.roles import CreditContext
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.wrappers import BesideRecord
from rl_jax.rollouts.wrappers.beside_record import join_records, record_rows
from rl_jax.runs import loop
from rl_jax.runtime import mesh
from rl_jax.tasks import RulePairs, base
from rl_jax.types import ENVIRONMENT, POLICY
from rl_jax.worlds import Arithmetic, Chain


@pytest.fixture(scope='module')
def records():
  """(rows of two prompts by two samples, 3 tokens wide; their examples)."""
  task = RulePairs(Arithmetic(digits=1, signed=False))
  tokenizer = CharTokenizer(task.alphabet)
  by_length = {}
  for i in range(task.num_prompts('train')):
    example = task.example('train', i)
    by_length.setdefault(len(task.target(example)), example)
  examples = [by_length[1], by_length[2]]  # with the end: 2 and 3 tokens
  sampler = types.SimpleNamespace(task=task, tokenizer=tokenizer)
  return record_rows(examples, sampler, 2, 2), examples, sampler


def test_records_are_the_first_recorded_responses(records):
  """In the first row of each group; one that is too long weighs nothing."""
  (response, kind, reward, live), examples, sampler = records
  target = sampler.task.target(examples[0])
  ids = [*sampler.tokenizer.encode(target), sampler.tokenizer.eos_ids[0]]
  assert response[0].tolist() == ids and (response[1:] == 0).all()
  assert kind.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]
  assert reward.tolist() == live.tolist() == [1, 0, 0, 0]


class Spelled(CharTokenizer):
  """Writes who speaks in front of each message."""

  def encode_added(self, before, after, **arguments):
    """The new part of a conversation that continues."""
    texts = []
    for messages, asked in (before, after):
      said = [f'{x["role"][0]}:{x["content"]}.' for x in messages]
      texts.append(''.join(said) + 'a:' * asked)
    assert texts[1].startswith(texts[0])
    return self.encode(texts[1][len(texts[0]) :])


def test_other_turns_of_a_conversation_are_not_trained():
  """They were written by nobody that is imitated, as rows of data only."""

  def turn(role, text):
    return {'role': role, 'content': text}

  example = base.Example('', '', 0, messages=(turn('user', 'x'),))
  record = base.RecordedResponse(
    messages=(turn('assistant', 'y'), turn('user', 'z'), turn('assistant', 'x'))
  )
  task = types.SimpleNamespace(recorded=lambda example: (record,))
  tokenizer = Spelled('xyzau:.')
  sampler = types.SimpleNamespace(task=task, tokenizer=tokenizer)
  (response,), (kind,), _, live = record_rows([example], sampler, 20, 1)
  assert live == [1.0] and tokenizer.decode(response[kind == POLICY]) == 'y.x.'
  between = tokenizer.decode(response[kind == ENVIRONMENT])
  assert between == 'u:z.a:'


def joined(toy, records, other):
  own = toy.trajectories(
    np.ones((4, 2)),
    group_size=2,
    reward_B=np.array([0.0, 1.0, 0.5, 0.0]),
    rewards={'outcome': np.zeros(4), 'format': np.ones(4)},
    logp_behaviour_BT=np.full((4, 2), -1.0),
  )
  return join_records(own, np.float32(other), *records[0])


def test_groups_of_both(toy, records):
  """Samples first; only the one record of the first prompt is trained."""
  traj = joined(toy, records, other=1.0)
  assert traj.group_size == 4 and traj.num_prompts == 2
  np.testing.assert_array_equal(traj.weight_B, [1, 1, 1, 0, 1, 1, 0, 0])
  for key, expected in (
    ('chosen_B', [0, 0, 1, 1] * 2),
    ('logged_B', [0, 0, 1, 1] * 2),
    ('opponent_B', [1, 1, 0, 0] * 2),
  ):
    np.testing.assert_array_equal(traj.extras[key], expected)
  np.testing.assert_array_equal(traj.reward_B[:4], [0, 1, 1, 0])
  np.testing.assert_array_equal(traj.rewards['outcome'][:4], [0, 0, 1, 0])
  assert traj.mask_BT[2].tolist() == [1, 1] and traj.mask_BT[3].sum() == 0
  own = joined(toy, records, other=0.0)
  assert (own.extras['opponent_B'] == 0).all()


def test_steps_are_those_of_the_record():
  """A chain, where the samples have one step and no thought."""
  task = Chain(min_operations=2, max_operations=2)
  tokenizer, example = CharTokenizer(task.alphabet), task.example('train', 0)
  describe = functools.partial(token_inputs, task, tokenizer)
  ids = [*tokenizer.encode('3'), 1]
  response = np.pad(np.array([ids] * 2), ((0, 0), (0, 30)))
  traj = start_trajectories(
    np.ones((1, 4)),
    np.ones((1, 4)),
    np.arange(1),
    group_size=2,
    max_response_tokens=32,
  ).replace(
    response_BT=jnp.array(response, jnp.int32),
    length_B=jnp.array([2, 2]),
    rewards={'outcome': jnp.zeros(2)},
    reward_B=jnp.zeros(2),
  )
  sampler = types.SimpleNamespace(
    task=task,
    tokenizer=tokenizer,
    run=lambda function, *arrays: jax.jit(function)(*arrays),
    row_inputs=jax.jit(describe),
  )
  done = types.SimpleNamespace(examples=[example])
  found, _ = BesideRecord(coef=0.0).extend(
    traj.replace(extras=describe(traj)), done, sampler
  )
  starts = found.extras['segment_start_BT']
  assert starts[:2].sum(axis=1).tolist() == [1, 1] and starts[2].sum() == 4
  for name, own in describe(found).items():
    np.testing.assert_array_equal(found.extras[name], own)


def test_the_record_wins(toy, records):
  """Over each sample, whatever their rewards; none where it is too long."""
  traj = joined(toy, records, other=1.0)
  edges = RecordWins()(CreditContext(traj.reward_B, traj)).value
  assert {*edges.win_NE[edges.weight_NE > 0].tolist()} == {2, 3}
  assert {*edges.lose_NE[edges.weight_NE > 0].tolist()} == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize('name', ['spin', 'seppo'])
def test_runs_of_the_bandit(toy, tmp_path, name, make_config):
  """The record becomes more likely than the samples of before."""
  config = make_config(
    toy.get_method(name),
    iterations='12',
    rollout__group_size='2',
    method__reference__iterations='4',
  )
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    loop.Trainer(config, str(tmp_path)).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert all(row['train/skipped'] == 0 for row in rows)
  assert all(row['rollout/logp_gap_max'] < 1e-4 for row in rows)
  assert rows[0]['preference/margin'] == pytest.approx(0.0, abs=1e-5)
  if name == 'spin':  # the reference of seppo is of an earlier round
    assert rows[4]['preference/margin'] == pytest.approx(0.0, abs=1e-5)
  assert rows[3]['preference/margin'] > 0.01
  assert rows[-1]['preference/logp_win'] > rows[0]['preference/logp_win'] + 0.2
