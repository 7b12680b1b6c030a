"""The bandit: a known optimum, host and device verifier."""

import pickle

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces import row_keys
from rl_jax.tasks import Countdown, Described
from rl_jax.worlds import Bandit


def test_one_best_action_per_context():
  task = Bandit(num_contexts=26, num_actions=5, max_other=1.0)
  for context, row in enumerate(task.table()):
    example = task.example('train', context)
    assert sorted(row)[-1] == 1.0 and sorted(row)[-2] < 1.0
    assert task.reward(example, example.answer) == {
      'outcome': 1.0,
      'value': 1.0,
    }
    for action, value in zip('abcde', row, strict=True):
      rewards = task.reward(example, action)
      assert rewards['value'] == value
      assert rewards['outcome'] == float(action == example.answer)
    for wrong in ('', 'f', 'ab', 'A', 'a '):
      assert task.reward(example, wrong) == {'outcome': 0.0, 'value': 0.0}


def test_table_depends_on_the_seed_alone():
  assert Bandit(seed=1).table() == Bandit(seed=1).table()
  assert Bandit(seed=1).table() != Bandit(seed=2).table()
  best = [row.index(1.0) for row in Bandit(num_contexts=26, seed=3).table()]
  assert len(set(best)) > 3


@pytest.mark.parametrize('wrap', [lambda task: task, Described])
def test_device_verifier_agrees_with_host_on_all_short_responses(wrap):
  """All token pairs of length 0, 1, 2 in every context, padding included."""
  task = wrap(Bandit(num_contexts=3, num_actions=4))
  tokenizer = CharTokenizer(task.alphabet)
  size = tokenizer.vocab_size
  rows = [
    (context, a, b, length)
    for context in range(3)
    for a in range(size)
    for b in range(size)
    for length in range(3)
  ]
  context, a, b, length = np.asarray(rows, np.int32).T
  examples = [task.example('train', c) for c in context]
  answer, answer_length = task.device_answers(examples, tokenizer)
  device = jax.jit(task.reward_device, static_argnums=4)(
    np.stack([a, b], 1), length, answer, answer_length, tokenizer
  )
  eos = tokenizer.eos_ids[0]
  for i, example in enumerate(examples):
    ids = [int(x) for x in (a[i], b[i])][: length[i]]
    if eos in ids:
      ids = ids[: ids.index(eos)]
    host = task.reward(example, tokenizer.decode(ids))
    assert device.keys() == host.keys()
    for name in host:
      assert abs(float(device[name][i]) - host[name]) < 1e-6, name


def test_descriptions_by_hand():
  """Action b of four is answer 1; 'bb' is not an answer. All but one are
  extras.
  """
  task = Described(Bandit(num_contexts=3, num_actions=4))
  example = task.example('train', 0)
  good, bad = task.reward(example, 'b'), task.reward(example, 'bb')
  assert (good['cluster_id'], bad['cluster_id']) == (1.0, -1.0)
  assert (good['format_id'], bad['format_id']) == (1.0, 0.0)
  assert task.reward(example, example.answer)['hit_rank'] == 1.0
  described = good.keys() - {'outcome', 'value', 'format', 'reference_reward'}
  assert {f'{name}_B' for name in described} <= row_keys.KEYS.keys()


def test_hints_and_references_of_the_described_bandit():
  """The hint is the best action; the reference response is always 'a'."""
  task = Described(Bandit())
  best = [task.example('train', c).answer for c in range(8)]
  assert 'a' in best and set(best) != {'a'}
  for context, answer in enumerate(best):
    example = task.example('train', context)
    assert task.hinted(example).prompt == 'ABCDEFGH'[context] + answer
    shown = task.with_examples(example, [(example, 'a'), (example, 'b')])
    letter = 'ABCDEFGH'[context]
    assert shown.prompt == f'{letter}a{letter}b{letter}'
    for response in ('a', 'b', 'bb'):
      found = task.reward(example, response)['reference_reward']
      assert found == float(answer == 'a')


def test_described_is_the_task_otherwise():
  """Prompts and weights are those of the task, also after pickling."""
  task = pickle.loads(pickle.dumps(Described(Bandit(num_contexts=3))))
  assert task == Described(Bandit(num_contexts=3))
  assert task.num_prompts('train') == 3
  assert task.alphabet == task.task.alphabet
  with pytest.raises(ValueError, match='Countdown does not number its answers'):
    Described(Countdown())
