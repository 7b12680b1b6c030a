"""Texts that end a response, whatever the tokens are."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode
from rl_jax.decoding import stop as stop_lib
from rl_jax.decoding.stop import make_stop, token_table
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer, CharTokenizer
from rl_jax.types import ENVIRONMENT


@dataclasses.dataclass(frozen=True)
class Pieces:
  """Tokens that are any bytes; 0 ends, 1 is special and has no text."""

  token_bytes: tuple[bytes, ...]
  eos_ids = (0,)
  pad_id = 0

  @property
  def vocab_size(self):
    """With the two special tokens."""
    return len(self.token_bytes)

  def encode(self, text, control=False):
    """Nothing to compare: no text is a control token."""
    return []

  def decode(self, ids):
    """A number that is not of a token has no text."""
    known = [self.token_bytes[i] for i in ids if i < self.vocab_size]
    return b''.join(known).decode('utf-8', 'replace')


def random_pieces(rng, size=12):
  """Tokens of up to 4 bytes of the letters a, b and an e with an accent."""
  letters = [b'a', b'b', b'\xc3', b'\xa9']

  def draw():
    return b''.join(letters[rng.integers(4)] for _ in range(rng.integers(1, 5)))

  return Pieces((b'', b'', *(draw() for _ in range(size - 2))))


def random_texts(rng):
  """One to three texts of up to 4 letters."""

  def draw(n):
    return ''.join('abé'[rng.integers(3)] for _ in range(n))

  return tuple(map(draw, rng.integers(1, 5, rng.integers(1, 4))))


def expected_end(tokenizer, texts, ids):
  """(tokens until a text is whole, the text before it), by trying all."""
  for count in range(1, len(ids) + 1):
    if any(text in tokenizer.decode(ids[:count]) for text in texts):
      whole = tokenizer.decode(ids[:count])
      for end in range(len(whole) + 1):
        starts = [whole[:end].find(text) for text in texts]
        if max(starts) >= 0:
          return count, whole[: min(s for s in starts if s >= 0)]
  return None, tokenizer.decode(ids)


def follow(stop, ids):
  """Tokens until the automaton or an id says that the response has ended."""
  state, last = 0, len(stop.tokenizer.token_bytes)
  for count, token in enumerate(ids, 1):
    if stop.table is not None:
      state = stop.table[state, min(token, last)]
    if state < 0 or token in stop.ids:
      return count
  return None


def test_the_text_that_ended_a_response_can_be_shown():
  """Only the text, not what follows it in its token; no end token."""
  letters = CharTokenizer('ab</>')
  ids = letters.encode('ab</a>')
  end = letters.eos_ids[0]
  hidden, shown = (make_stop(letters, ('</a>',), x) for x in (False, True))
  assert (hidden.text(ids), shown.text(ids)) == ('ab', 'ab</a>')
  assert shown.text([*ids[:3], end]) == 'ab<' == shown.text(ids[:3])
  assert shown.ended_by(ids) == hidden.ended_by(ids) == '</a>'
  rng = np.random.default_rng(1)
  for _ in range(50):
    tokenizer, texts = random_pieces(rng), random_texts(rng)
    ids = rng.integers(1, tokenizer.vocab_size + 1, 12).tolist()
    count, before = expected_end(tokenizer, texts, ids)
    stop = make_stop(tokenizer, tuple(texts), True)
    if count is None or ids[count - 1] in tokenizer.eos_ids:
      continue
    text = stop.text(ids[:count])
    assert text.startswith(before) and text[len(before) :] in texts


def test_the_end_is_that_of_a_search_through_the_text():
  """Letters of two bytes, overlapping texts, tokens that hold several."""
  rng, ended, with_table = np.random.default_rng(0), 0, 0
  for _ in range(150):
    tokenizer, texts = random_pieces(rng), random_texts(rng)
    ids = rng.integers(1, tokenizer.vocab_size + 1, 12).tolist()
    stop = make_stop(tokenizer, texts)
    count, text = expected_end(tokenizer, texts, ids)
    assert follow(stop, ids) == count, (tokenizer, texts, ids)
    assert stop.text(ids[:count]) == text, (tokenizer, texts, ids)
    ended, with_table = ended + bool(count), with_table + bool(stop.texts)
  assert 50 < ended < 150 and with_table == 150


def test_the_table_by_hand():
  """States of 'aab': '', a, aa, aab; ~s where the text is whole."""
  table = token_table([b'aab'], [b'a', b'b', b'aa', b'ba', b'', b'aaba'])
  np.testing.assert_array_equal(
    table,
    [
      [1, 0, 2, 1, 0, ~1, 0],
      [2, 0, 2, 1, 1, ~1, 1],
      [2, ~3, 2, ~1, 2, ~1, 2],
      [1, 0, 2, 1, 3, ~1, 3],
    ],
  )


def test_ids_suffice_where_a_text_is_one_letter():
  """No table, and no cost, for characters, bytes and few merged tokens."""
  letters, data = CharTokenizer('abc'), ByteTokenizer()
  (end,), (b,) = letters.eos_ids, letters.encode('b')
  stop = make_stop(letters, ('b',))
  assert stop.ids == (end, b) and stop.table is None
  assert make_stop(letters).ids == (end,)
  assert make_stop(data, ('\n', 'a')).ids == (*data.eos_ids, 10, 97)
  assert make_stop(data, ('é',)).table.shape == (3, 259)
  many = Pieces((b'', b'', *(b'a' * n for n in range(1, 30))))
  assert make_stop(many, ('a',)).table is not None
  few = Pieces((b'', b'', b'a', b'b', b'ba'))
  assert make_stop(few, ('a',)).ids == (0, 2, 4)


def test_what_ended_a_response_is_no_text():
  """Neither it, nor what lies after it in its token."""
  tokenizer = CharTokenizer('abc')
  (end,), encode = tokenizer.eos_ids, tokenizer.encode
  stop = make_stop(tokenizer, ('b', 'ca'))
  assert stop.text([*encode('ac'), end]) == 'ac'
  assert stop.text([*encode('ac'), end][:2]) == 'ac'
  assert stop.text(encode('ab')) == 'a'
  assert stop.text(encode('aca')) == 'a'
  assert stop.text([end]) == stop.text([]) == ''
  # Whole in tokens that were given: the response continued.
  assert stop.text(encode('aba')) == 'aba'


def test_what_ended_a_response():
  """A text, an end token or a control token, or the limit."""
  tokenizer = CharTokenizer('abc')
  (end,), encode = tokenizer.eos_ids, tokenizer.encode
  stop = make_stop(tokenizer, ('b', 'ca'))
  assert stop.ended_by(encode('ab')) == 'b'
  assert stop.ended_by(encode('aca')) == 'ca'
  assert stop.ended_by([*encode('b'), end]) == ''
  assert stop.ended_by(encode('aba')) is None
  assert stop.ended_by([]) is None
  control = dataclasses.replace(stop, ids=(end, 2), texts=())
  assert control.ended_by([2]) == '' and control.ended_by([3]) is None
  merged = Pieces((b'', b'', b'ab', b'bcab'))
  assert make_stop(merged, ('bb', 'c')).text([2, 3]) == 'a'


def test_bad_texts_are_named():
  with pytest.raises(ValueError, match='rollout.stop: a text is empty'):
    make_stop(ByteTokenizer(), ('',))
  with pytest.raises(ValueError, match='have 300 bytes in all, more than 256'):
    make_stop(ByteTokenizer(), ('a' * 200, 'b' * 100))
  with pytest.raises(ValueError, match="character 'x'"):
    make_stop(CharTokenizer('ab'), ('x',))


CFG = models.ModelConfig(
  vocab_size=14,  # two more than the tokenizer has
  num_layers=1,
  width=16,
  num_heads=2,
  num_kv_heads=1,
  head_size=8,
  mlp_size=24,
)
N, G, T = 4, 8, 24
KEY = jax.random.key(2)
TOKENIZER = Pieces(
  (b'', b'', b'a', b'b', b'c', b'ab', b'bc', b'\xc3', b'\xa9', b'ca', b'd')
  + (b'e',)
)
STOP = make_stop(TOKENIZER, ('abc', 'éa', 'dd'))


def make_traj():
  rng = np.random.default_rng(5)
  return decoding.start_trajectories(
    rng.integers(2, CFG.vocab_size, (N, 3)),
    np.ones((N, 3)),
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )


@functools.cache
def compiled(slots, new_tokens):
  """A jitted function of trajectories and what ends them."""
  params = params_lib.init_params(CFG, jax.random.key(0))
  return jax.jit(
    lambda traj, how: decoding.generate(
      params, CFG, traj, KEY, how, max_new_tokens=new_tokens, slots=slots
    )
  )


def generate(traj, table=STOP.table, slots=None, new_tokens=T):
  """With one program for all tables."""
  how = decoding.SamplingConfig(eos_ids=STOP.ids, stop_SV=table)
  return compiled(slots, new_tokens)(traj, how)


def assert_same(found, expected):
  for name in ('response_BT', 'kind_BT', 'length_B', 'finished_B'):
    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_rows_end_where_their_text_does():
  """E2: the tokens are those without stop texts, up to the end."""
  found = generate(make_traj())
  endless = generate(make_traj(), np.zeros_like(STOP.table))
  ended = 0
  for row in range(N * G):
    ids = np.asarray(endless.response_BT[row])[: int(endless.length_B[row])]
    count, text = expected_end(TOKENIZER, ('abc', 'éa', 'dd'), ids.tolist())
    kept = ids[:count]
    np.testing.assert_array_equal(found.response_BT[row, : len(kept)], kept)
    assert found.length_B[row] == len(kept)
    by_end = not count and bool(endless.finished_B[row])
    assert bool(found.finished_B[row]) == bool(count) or by_end
    assert STOP.text(kept) == text
    ended += bool(count)
  assert 5 < ended < N * G, 'the case must have both kinds of rows'


def test_slots_and_narrower_batches_change_nothing(monkeypatch):
  """E2: the state goes with the row."""
  expected = generate(make_traj())
  monkeypatch.setattr(decode, 'batch_widths', lambda slots, *_: [slots, 5, 2])
  assert_same(generate(make_traj(), slots=9), expected)


def test_a_row_that_goes_on_remembers_what_it_has_read():
  """E2: 3 tokens at a time; tokens of the environment count too."""
  expected, traj = generate(make_traj()), make_traj()
  for _ in range(T // 3):
    traj = generate(traj, new_tokens=3)
  assert_same(traj, expected)
  given = jnp.broadcast_to(jnp.array([2, 3, 4, 2, 3]), (N * G, 5))
  traj = make_traj().replace(
    response_BT=jnp.zeros((N * G, T), jnp.int32).at[:, :5].set(given),
    kind_BT=jnp.zeros((N * G, T), jnp.int32).at[:, :5].set(ENVIRONMENT),
    length_B=jnp.full(N * G, 5),
  )
  found = generate(traj, new_tokens=3)
  ends = np.isin(np.asarray(found.response_BT[:, 5]), (0, 4, 9))  # c, ca
  np.testing.assert_array_equal(found.length_B == 6, ends)
  assert ends.any() and not ends.all()


def test_a_long_text_over_a_large_vocabulary_is_built_at_once():
  """One row for each beginning of a text, which several may share."""
  rng = np.random.default_rng(0)
  tokens = [bytes(rng.integers(97, 100, n)) for n in rng.integers(1, 6, 20_000)]
  table = token_table([b'abcab' * 4, b'abcb'], tokens)
  assert table.shape == (22, 20_001) and table.dtype == np.int16
  assert stop_lib.MOST_BYTES < np.iinfo(np.int16).max
