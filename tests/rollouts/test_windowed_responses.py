"""Responses over several iterations: who waits, what is trained, who wrote."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.methods import dapo, grpo
from configs.worlds import windows as config_module
from rl_jax import decoding
from rl_jax.config import validate
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.judging.learned import LearnedRewards
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.learning.score import with_scores
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.rollouts import windows
from rl_jax.rollouts.collect import Judging, RolloutConfig
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import Draw
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import PAD, POLICY
from rl_jax.verification.pool import VerifierPool
from rl_jax.worlds import Chain

N, T, WINDOW = 2, 6, 2
# Length of the response of each group serial; 9 never ends by itself.
LENGTHS = np.array([5, 2, 0, 3, 9, 0, 0, 9, 1, 9, 0, 9, 0, 0, 0, 0])
KEY = jax.random.key(0)
ROLLOUT = RolloutConfig(
  num_prompts=N,
  group_size=1,
  max_prompt_tokens=8,
  max_response_tokens=T,
  window_tokens=WINDOW,
)


def write(params, traj, key):
  """Two more tokens, up to the length by the row's serial; 7 and 1 at ends."""
  del params, key
  full_B = jnp.asarray(LENGTHS)[traj.row_id_B2[:, 0]]
  last_B = jnp.minimum(full_B, T)
  length_B = jnp.minimum(traj.length_B + WINDOW, last_B)
  position_1T = jnp.arange(T)[None]
  written_BT = position_1T < length_B[:, None]
  new_BT = written_BT & (traj.kind_BT == PAD)
  logp_BT = -1.0 - position_1T * jnp.ones_like(traj.logp_behaviour_BT)
  return traj.replace(
    response_BT=jnp.where(new_BT, 7, traj.response_BT),
    kind_BT=jnp.where(written_BT, POLICY, PAD),
    logp_behaviour_BT=jnp.where(new_BT, logp_BT, traj.logp_behaviour_BT),
    length_B=length_B.astype(jnp.int32),
    finished_B=length_B == full_B,
    mask_BT=written_BT.astype(jnp.float32),
  )


def collector():
  """A collector of a chain task; the model is a table."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  task = Chain(min_operations=1, max_operations=2, num_train=20)
  engine = make_engine(
    None,
    decoding.SamplingConfig(),
    EngineConfig(group_size=1, max_response_tokens=T),
    mesh,
  )
  prompts = PromptSet(task, 'train', CharTokenizer(task.alphabet), 8)
  return windows.WindowedCollector(
    ROLLOUT,
    engine=dataclasses.replace(engine, generate=jax.jit(write)),
    score=lambda params, traj, method: (traj, {}),
    prompts=prompts,
    selector=HostSelector(ShuffledPass(), len(prompts), KEY),
    judging=Judging(TextVerifier(VerifierPool(task, num_workers=0))),
    key=KEY,
  )


def iterations(source, numbers):
  """The result of collect in these iterations, of step 10 * number."""
  found = []
  for number in numbers:
    traj, _, (done,), lengths = source.collect(
      Draw({}, None, N * number, 10 * number)
    )
    found.append((jax.device_get(traj), done, lengths))
  return found


@pytest.fixture(scope='module')
def four():
  """Four iterations."""
  return iterations(collector(), range(4))


def test_rows_wait_by_hand(four):
  """Serial 0 has 5 tokens: three windows. Serial 1 has 2, then serial 3 with 3
  takes its place for two windows, then serial 7, which never ends, for three.
  In the fourth iteration serial 6 with no token has the first place."""
  serials = [traj.row_id_B2[:, 0].tolist() for traj, *_ in four]
  assert serials == [[0, 1], [0, 3], [0, 3], [6, 7]]
  lengths = [x[:, 0].tolist() for *_, x in four]
  assert lengths == [[2, 2], [4, 2], [5, 3], [0, 2]]
  waits = [traj.extras['waits_B'].tolist() for traj, *_ in four]
  assert waits == [[1, 0], [1, 1], [0, 0], [0, 1]]
  assert [done.tokens for _, done, _ in four] == [4, 4, 2, 2]
  fractions = [done.metrics['rollout/waiting_fraction'] for _, done, _ in four]
  assert fractions == [0.5, 1.0, 0.0, 0.5]


def test_what_is_trained_by_hand(four):
  """Waiting rows: this window; ended ones: all, with where the window began."""
  masks = [traj.mask_BT.sum(1).tolist() for traj, *_ in four]
  assert masks == [[2, 2], [2, 2], [5, 3], [0, 2]]
  np.testing.assert_array_equal(four[1][0].mask_BT[0], [0, 0, 1, 1, 0, 0])
  starts = [traj.extras['window_start_B'].tolist() for traj, *_ in four]
  assert starts == [[0, 0], [2, 0], [4, 2], [0, 0]]
  traj = four[2][0]
  np.testing.assert_array_equal(
    traj.extras['version_BT'], [[0, 0, 10, 10, 20, 0], [10, 10, 20, 0, 0, 0]]
  )
  np.testing.assert_array_equal(
    traj.logp_behaviour_BT, [[-1, -2, -3, -4, -5, 0], [-1, -2, -3, 0, 0, 0]]
  )
  rewards = [np.isnan(done.reward_NG[:, 0]).tolist() for _, done, _ in four]
  assert rewards == [[True, False], [True, True], [False] * 2, [False, True]]


def test_a_row_is_verified_when_it_ends(monkeypatch):
  """By hand, of the rows above: serial 1; none, so the first; 0 and 3; 6."""
  source, judged = collector(), []
  reward = source.runner._journal.reward

  def counted(examples, responses):
    judged.append([len(response) for response in responses])
    return reward(examples, responses)

  monkeypatch.setattr(source.runner._journal, 'reward', counted)
  found = iterations(source, range(4))
  assert judged == [[2], [4], [5, 3], [0]]
  names = [traj.rewards.keys() for traj, *_ in found]
  assert names[0] and all(keys == names[0] for keys in names)
  for traj, *_ in found:
    waits_B = traj.extras['waits_B'] > 0
    assert not traj.reward_B[waits_B].any() and traj.valid_B[waits_B].all()


def test_the_score_of_a_beginning_is_no_reward(four):
  """A reward model gives 1 to all rows, waiting ones too: 2 where they end."""
  source = collector()
  source._learned = LearnedRewards(
    score=lambda traj: {'liked': jnp.ones_like(traj.valid_B)},
    weights={'liked': 2.0},
  )
  found = iterations(source, range(4))
  for (traj, *_), (plain, *_) in zip(found, four, strict=True):
    ended_B = 1 - traj.extras['waits_B']
    np.testing.assert_array_equal(traj.rewards['liked'], ended_B)
    np.testing.assert_array_equal(traj.reward_B, plain.reward_B + 2 * ended_B)


def test_rows_of_a_group_are_verified_when_it_is_over():
  """Groups of two: one waits, one ended now, in both; one is over."""
  open_B = np.array([True, True, True, False, True, False])
  waits_B = np.array([True, False, False, False, True, False])
  due_B = windows._due(open_B, waits_B, 2)
  np.testing.assert_array_equal(due_B, [0, 1, 1, 1, 0, 0])
  np.testing.assert_array_equal(
    windows._due(waits_B, waits_B, 6), [1] + [0] * 5
  )


def test_rows_end_at_the_limit():
  """Six tokens of serial 7: its place is free, though it has not finished.

  The mask has those of earlier windows, as of every response that ended.
  """
  source = collector()
  *_, (traj, _, lengths) = iterations(source, range(6))
  assert traj.row_id_B2[1, 0] == 7 and lengths[1, 0] == T
  assert not traj.finished_B[1] and traj.extras['waits_B'][1] == 0
  assert traj.extras['window_start_B'][1] == 4
  np.testing.assert_array_equal(traj.mask_BT[1], 1.0)
  assert not source.selector.state['rows']['open_B'][1]


def test_continued_from_a_state(four):
  """E0: two iterations, the state into another collector, two more."""
  first, second = collector(), collector()
  iterations(first, range(2))
  second.selector.state = first.selector.state
  for (traj, *_), (expected, *_) in zip(
    iterations(second, (2, 3)), four[2:], strict=True
  ):
    jax.tree.map(np.testing.assert_array_equal, traj, expected)


def test_rows_of_a_group_that_ended_before_weigh_nothing(toy):
  """Row 0 continues from token 2, row 1 was over before this window."""
  traj = toy.trajectories(
    np.ones((2, 3)), group_size=2, finished_B=np.array([False, True])
  )
  found = windows.in_window(
    traj,
    given_B=jnp.array([2, 3]),
    open_B=jnp.array([True, False]),
    waits_B=jnp.array([True, False]),
    version_BT=jnp.zeros((2, 3), jnp.int32),
  )
  np.testing.assert_array_equal(found.mask_BT, [[0, 0, 1], [0, 0, 0]])
  np.testing.assert_array_equal(found.weight_B, [1, 0])
  np.testing.assert_array_equal(found.valid_B, [1, 0])


def test_gaps_are_those_of_this_window(toy):
  """Earlier tokens were written by other weights."""
  behaviour = np.array([[-9.0, -1.0]])
  traj = toy.trajectories(
    np.ones((1, 2)),
    group_size=1,
    logp_behaviour_BT=behaviour,
    extras={'window_start_B': np.array([1.0])},
  )
  stats = {'logp': jnp.array([[-1.0, -1.5]]), 'entropy': jnp.zeros((1, 2))}
  assert with_scores(traj, stats)[1]['rollout/logp_gap_max'] == 0.5


@pytest.mark.parametrize(
  'method, window, named',
  [(dapo, 4, 'method.group_filter'), (grpo, 99, 'rollout.max_response_tokens')],
)
def test_what_does_not_fit_is_named(method, window, named):
  config = config_module.get_config(method.get_method())
  rollout = dataclasses.replace(
    config.rollout, group_size=2, window_tokens=window
  )
  with pytest.raises(ValueError, match=f'window_tokens = {window}.*{named}'):
    validate(dataclasses.replace(config, rollout=rollout))
