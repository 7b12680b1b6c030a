"""Logs of tokens have the right rows and texts that add up, and are few."""

import dataclasses
import types

import jax.numpy as jnp
import numpy as np

from configs.worlds import bandit
from rl_jax.decoding.stop import make_stop
from rl_jax.learning import token_log
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.overrides import override
from rl_jax.records import rollout_log
from rl_jax.rollouts.rounds import Round
from rl_jax.runs import stages as stages_lib
from rl_jax.types import ENVIRONMENT, PAD, POLICY


def test_rows_are_limited_by_tokens(toy):
  """4 of 8 prompts x 8 samples of 2 tokens; of long rows only some."""
  config = bandit.get_config(toy.get_method('grpo'))

  def rows(**changes):
    return stages_lib.num_rows(
      dataclasses.replace(
        config, rollout=dataclasses.replace(config.rollout, **changes)
      )
    )

  assert rows() == 32 and rows(num_prompts=1) == 8
  assert rows(max_response_tokens=512) == 8
  assert rows(max_response_tokens=100_000) == 1
  off = override(config, 'guards.log_rollouts', '0')
  assert stages_lib.num_rows(off) == 0


def test_rows_are_found_in_their_minibatch():
  """E0: groups 3 and 0 of 2 rows each; of rows 0 to 2 only group 0 is there."""
  x_BT = jnp.arange(8.0).reshape(4, 2)
  traj = types.SimpleNamespace(group_size=2)
  first = token_log.pick({'x': x_BT}, traj, jnp.array([3, 0]), 3)
  assert first['seen'].tolist() == [True, True, False]
  assert first['x'][:2].tolist() == [[4, 5], [6, 7]]
  second = token_log.pick({'x': -x_BT}, traj, jnp.array([1, 2]), 3)
  assert second['seen'].tolist() == [False, False, True]
  both = token_log.latest([first, second])
  assert both['x'].tolist() == [[4, 5], [6, 7], [0, -1]]
  third = token_log.pick({'x': x_BT + 9}, traj, jnp.array([0, 3]), 3)
  assert token_log.latest([first, second, third])['x'].tolist() == [
    [9, 10],
    [11, 12],
    [0, -1],
  ]


def test_fractions_of_several_losses_keep_their_names(toy):
  """The clip of the policy and that of the values; a scalar is left out."""
  traj = toy.trajectories(np.array([[1, 0], [1, 1]]), group_size=2)
  fields = token_log.token_fields(
    traj,
    {
      'policy/clip_fraction': jnp.array([[True, True], [False, True]]),
      'value/clip_fraction': jnp.ones((2, 2)),
      'batch/kept_group_fraction': jnp.float32(0.5),
    },
  )
  assert fields['clip'].tolist() == [[1, 0], [0, 1]]
  assert fields['value_clip'].tolist() == [[1, 0], [1, 1]]
  assert not [name for name in fields if 'kept' in name]


def test_token_texts_add_up_to_the_text():
  """A character of three bytes is the text of the last of its tokens."""
  tokenizer = ByteTokenizer()
  ids = [*tokenizer.encode('a\u6f22b'), 257]
  texts = rollout_log.token_texts(tokenizer, ids)
  assert texts == ['a', '', '', '\u6f22', 'b', '']
  bad = [0xE6] * 6
  assert ''.join(rollout_log.token_texts(tokenizer, bad)) == '\ufffd' * 6


def make_round(texts, serial):
  """One prompt, two samples, of which this process may have read none."""
  return Round(
    indices=np.array([0]),
    examples=[
      types.SimpleNamespace(id=serial, prompt='p', answer=None, meta={})
    ],
    texts=texts,
    errors=[None, None],
    reward_NG=np.array([[0.5, 1.0]], np.float32),
    tokens=2,
    responses={},
  )


def test_lines_are_those_of_the_trained_rows():
  """E0: the batch took the second round's group; a row given twice is one."""
  log = rollout_log.RolloutLog(
    rounds=[make_round('ab', 40), make_round('cd', 41)],
    first_serial=7,
    arrays={},
    prompts=1,
    tokenizer=ByteTokenizer(),
    stop=make_stop(ByteTokenizer()),
  )
  field = np.array([[0.123456, 2.0]])
  host = {
    'row_id': np.array([[8, 1], [8, 0], [8, 1]]),
    'weight': np.array([1.0, 0.0, 1.0]),
    'response': np.array([[ord(t), 257] for t in 'dcd']),
    'length': np.array([1, 2, 1]),
    'kind': np.array([[POLICY, PAD], [POLICY, ENVIRONMENT], [POLICY, PAD]]),
    'tokens': {
      'x': field,
      'trained': np.array([[1.0, 1.0]]),
      'seen': np.array([True]),
    },
  }
  first, second = log.lines(host)
  assert (first['prompt_id'], first['response']) == (41, 'd')
  assert (first['reward'], first['weight']) == (1.0, 1.0)
  assert first['tokens'] == {'text': ['d'], 'x': [0.1235]}
  assert (second['response'], second['weight']) == ('c', 0.0)
  assert (first['ended_by'], second['ended_by']) == (None, '')
  assert 'tokens' not in second
  assert second['told'] and 'told' not in first
  host['tokens']['trained'] = np.array([[0.0, 1.0]])
  assert log.lines(host)[0]['tokens']['trained'] == [0.0]


def test_rows_without_tokens_and_weight_are_not_logged():
  """A clone that is none, a row that fills up a group; one has failed."""
  done = make_round('ab', 40)
  log = rollout_log.RolloutLog(
    rounds=[done],
    first_serial=7,
    arrays={},
    prompts=1,
    tokenizer=ByteTokenizer(),
    stop=make_stop(ByteTokenizer()),
  )
  host = {
    'row_id': np.array([[7, 0], [7, 1], [0, 0]]),
    'weight': np.array([1.0, 0.0, 0.0]),
    'response': np.array([[ord('a')], [0], [0]]),
    'length': np.array([1, 0, 0]),
    'kind': np.array([[POLICY], [PAD], [PAD]]),
  }
  assert [line['sample'] for line in log.lines(host)] == [0]
  done.errors[:] = ['raised'] * 2
  assert [line['sample'] for line in log.lines(host)] == [0, 1]
  weighed = {**host, 'weight': np.ones(3)}  # an empty response of a batch
  assert len(log.lines(weighed)) == 3


def test_a_round_in_which_none_took_part_has_no_errors():
  """Else no run with such a round would end when nothing can be judged."""
  failed, none = make_round('ab', 40), make_round('', 41)
  failed.errors[:] = ['raised'] * 2
  for one in (failed, none):
    one.reward_NG[:] = np.nan
  assert rollout_log.sample_errors([failed, none]) == ['raised'] * 2
  none.reward_NG[0, 0] = 0.0
  assert rollout_log.sample_errors([failed, none])[2:] == [None, None]


def test_sampling_metrics_count_every_round():
  """Rewards 0.5, 1 and 0.5: a failed sample has none, a dropped group has."""
  failed = make_round('cd', 41)
  failed.reward_NG[0, 1] = np.nan
  failed.errors[1] = 'raised'
  found = rollout_log.sampling_metrics([make_round('ab', 40), failed])
  assert found['rollout/reward'] == np.float32(2.0 / 3)
  assert (found['rollout/rounds'], found['rollout/reward_errors']) == (2, 1)
