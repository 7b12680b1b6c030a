"""Environments on the device are those on the host."""

import jax
import numpy as np
import pytest

from rl_jax.decoding.stop import make_stop
from rl_jax.models.tokenizer import ByteTokenizer, CharTokenizer
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import (
  Arms,
  Haggling,
  KeyDoor,
  NarratedKeyDoor,
  PlannedKeyDoor,
  PricedTools,
  device_text,
)

ROWS, STEPS = 60, 12


def turns_of(task, tokenizer, examples):
  """Tokens [ROWS, STEPS, A] and lengths: solutions with mistakes, and noise."""
  rng = np.random.default_rng(0)
  heads = [''] * 6
  if isinstance(task, PlannedKeyDoor):
    heads = ['!K', '~K', '!D', '~G', 'K', '~']
  width = 4 + max(len(word) for word in task.actions(examples[0]))
  ids = rng.integers(-1, tokenizer.vocab_size + 2, (ROWS, STEPS, width))
  ids[ids == tokenizer.eos_ids[0]] = tokenizer.pad_id
  length = rng.integers(0, width + 1, (ROWS, STEPS))
  for row, example in enumerate(examples):
    words, done = task.actions(example), 0
    for step in range(STEPS):
      kind, word = rng.integers(12), words[min(done, len(words) - 1)]
      text = heads[rng.integers(6 if kind > 9 else 4)] + word
      if kind > 10:  # almost a word
        text = rng.choice([text[:-1], text + text[-1], text + ' ', ' ' + text])
        text = ''.join(c for c in text if c in task.alphabet)
      spelled = tokenizer.encode(text)
      if kind == 9:  # padding decodes to nothing
        spelled.insert(1, tokenizer.pad_id)
      if kind % 2:
        spelled.append(tokenizer.eos_ids[0])
      if kind:
        length[row, step] = len(spelled[:width])
        ids[row, step, : length[row, step]] = spelled[:width]
        done += 0 < kind < 10
  return ids.astype(np.int32), length.astype(np.int32)


@pytest.mark.parametrize(
  ('task', 'tokenizer'),
  [
    pytest.param(KeyDoor(), None, marks=pytest.mark.slow),
    (KeyDoor(size=4, words='word'), ByteTokenizer()),
    pytest.param(KeyDoor(words='phrase'), None, marks=pytest.mark.slow),
    (PlannedKeyDoor(subtasks=2), None),
    (NarratedKeyDoor(), None),
    (PricedTools(), None),
    (Arms(pulls=9, keep=4), None),
    (Haggling(), None),
  ],
)
def test_replies_are_those_of_the_host(task, tokenizer):
  """E0: rewards, observations, ends; equal states and actions, and no others.

  Padding, unknown ids and ends of a turn are those of decoded texts.
  """
  tokenizer = tokenizer or CharTokenizer(task.alphabet)
  stop = make_stop(tokenizer)
  examples = [task.example('train', n) for n in range(ROWS)]
  ids, length = turns_of(task, tokenizer, examples)
  step = jax.jit(lambda *x: task.step_device(*x, tokenizer))
  state, number_B = task.begin_device(
    task.device_answers(examples, tokenizer)[0]
  )
  walks = [task.make(example) for example in examples]
  names, live, done = {}, set(range(ROWS)), 0
  for row, walk in enumerate(walks):
    told = walk.reset(seed_of(examples[row]))
    names[('state', int(number_B[row]))] = told.state
  for turn in range(STEPS):
    state, reply = step(state, ids[:, turn], length[:, turn])
    host = jax.device_get(reply)
    for row in sorted(live):
      text = stop.text(ids[row, turn, : length[row, turn]])
      told = walks[row].step(text)
      found = {name: float(x[row]) for name, x in host.rewards.items()}
      assert found == dict(told.rewards), text
      said = host.ids_BO[row, : host.length_B[row]].tolist()
      assert said == tokenizer.encode(told.observation)
      for kind, number in (('state', host.state_B), ('action', host.action_B)):
        key = kind, int(number[row])
        assert names.setdefault(key, getattr(told, kind)) == getattr(told, kind)
      assert host.done_B[row] == told.done
      if host.calls_B is not None:
        assert host.calls_B[row] == told.calls
        assert host.duration_B[row] == told.duration
      if told.done:
        live.remove(row)
        done += 1
  assert len(set(names.values())) == len(names)
  # Each third action of PricedTools is an answer, Arms has nine pulls, sellers
  # lose patience: all of their episodes end.
  assert 5 < done < ROWS + isinstance(task, PricedTools | Arms | Haggling)


def test_texts_by_hand():
  """Words 'ab' and 'ac' after the head 'a'; any other text is one of two."""
  tokenizer = CharTokenizer('abc')
  table_SV, texts = device_text.word_table(['ab', 'ac'], tokenizer, ['a'])
  ids, length = np.zeros((6, 3), np.int32), np.array([0, 2, 3, 3, 1, 2])
  for row, text in enumerate(('', 'ac', 'ab', 'abb', 'b', 'a')):
    ids[row, : len(text)] = tokenizer.encode(text)
  state_B = device_text.spelled(table_SV, ids, length)
  found = [texts[s] for s in state_B]
  assert found == ['', 'ac', 'ab', 'a\0', '\0', 'a']
