"""A hidden digit and what tools say of it."""

import jax.numpy as jnp

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.worlds import PricedTools


def test_tools_are_right_as_often_as_they_should_be():
  """Shares over 500 questions; the fast tool says another digit else."""
  task = PricedTools(num_train=500, fast_right=0.8, known=0.25)
  facts = [task.facts(task.example('train', n)) for n in range(500)]
  assert abs(sum(fast == digit for digit, fast, _ in facts) / 500 - 0.8) < 0.05
  assert abs(sum(told == digit for digit, _, told in facts) / 500 - 0.25) < 0.06
  assert all(told in (digit, -1) for digit, _, told in facts)


def test_an_episode_by_hand():
  """Costs 1 and 5 are durations; nonsense takes 1; the answer ends it."""
  task = PricedTools(known=0.0, fast_right=0.0)
  example = task.example('train', 0)
  digit, fast, _ = task.facts(example)
  episode = task.make(example)
  assert episode.reset(0).observation == '?>'
  replies = [episode.step(text) for text in ('f', 's', 'ss', '', str(digit))]
  assert [r.observation for r in replies] == [
    f'{fast}>',
    f'{digit}>',
    '?>',
    '?>',
    '',
  ]
  assert [r.duration for r in replies] == [1, 5, 1, 1, 1]
  assert [r.calls for r in replies] == [1, 1, 0, 0, 0]
  assert [r.rewards['cost'] for r in replies] == [1, 5, 0, 0, 0]
  assert [r.rewards['malformed'] for r in replies] == [0, 0, 1, 1, 0]
  assert [r.done for r in replies] == [False] * 4 + [True]
  assert replies[-1].rewards['outcome'] == 1


def test_the_first_call_tells_how_late_it_is():
  """Two turns before it; a second call and the answer add nothing."""
  task = PricedTools(known=0.0)
  example = task.example('train', 0)
  episode = task.make(example)
  for _ in range(2):  # an episode does not know the one before
    episode.reset(0)
    replies = [episode.step(text) for text in ('?', '', 's', 'f', '0')]
    assert [r.rewards['before_call'] for r in replies] == [0, 0, 2, 0, 0]
    assert [r.rewards['called'] for r in replies] == [0, 0, 1, 0, 0]


def test_the_device_counts_the_same():
  """First call at once, after two other turns, and never."""
  task = PricedTools(known=0.0)
  examples = [task.example('train', n) for n in range(3)]
  tokenizer = CharTokenizer(task.alphabet)
  answers, _ = task.device_answers(examples, tokenizer)
  state, _ = task.begin_device(jnp.asarray(answers))
  found = []
  for letters in ('s??', 'f??', 's?s', '?sf'):
    ids = [tokenizer.encode(letter) for letter in letters]
    state, reply = task.step_device(
      state, jnp.asarray(ids), jnp.ones(3, jnp.int32), tokenizer
    )
    rewards = reply.rewards
    found.append(list(map(int, [*rewards['called'], *rewards['before_call']])))
    wrong = [float(letter == '?') for letter in letters]
    assert rewards['malformed'].tolist() == wrong
  assert found == [
    [1, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0],
    [0, 0, 1, 0, 0, 2],
    [0, 1, 0, 0, 3, 0],
  ]
