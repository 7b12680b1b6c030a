"""Words and other pieces as tokens."""

import pytest

from rl_jax.models.files import tokenizer_files
from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.models.tokenizer import CharTokenizer

WORDS = PieceTokenizer(('take', ' box', ' boxes', '0', '1', ' ', 'b'))


def test_the_longest_piece_is_taken():
  """By hand: ids are places + 2; ' boxes' wins over ' box'."""
  assert WORDS.encode('take box01') == [2, 3, 5, 6]
  assert WORDS.encode('take boxes b') == [2, 4, 7, 8]
  assert WORDS.encode('') == []
  assert WORDS.vocab_size == 9


@pytest.mark.parametrize('text', ['take box0 boxes', 'bb 1'])
def test_round_trip(text):
  ids = WORDS.encode(text)
  assert WORDS.decode(ids) == text
  assert b''.join(WORDS.token_bytes[i] for i in ids) == text.encode()


def test_decode_never_raises():
  """Padding, the end, unknown and negative ids add nothing."""
  assert WORDS.decode([0, 1, -3, 99, 2, 2**40]) == 'take'


def test_characters_are_pieces():
  """E0: with single characters it is CharTokenizer."""
  letters = 'ab9 +'
  one, other = PieceTokenizer(tuple(letters)), CharTokenizer(letters)
  assert one.encode('9a +b') == other.encode('9a +b')
  assert one.token_bytes == other.token_bytes
  assert one.eos_ids == other.eos_ids and one.pad_id == other.pad_id


def test_files(tmp_path):
  tokenizer_files.save_tokenizer(WORDS, str(tmp_path))
  assert tokenizer_files.load_tokenizer(str(tmp_path)) == WORDS


@pytest.mark.parametrize(
  ('pieces', 'wrong'),
  [
    ((), 'not a tuple of texts'),
    ('ab', 'not a tuple of texts'),
    (('a', ''), 'no text'),
    (('a', 3), 'no text'),
    (('\ud800',), 'half a character'),
    (('a', 'b', 'a'), r"\['a'\] more than once"),
  ],
)
def test_bad_pieces_are_named(pieces, wrong):
  with pytest.raises(ValueError, match=wrong):
    PieceTokenizer(pieces)


def test_texts_that_are_not_made_of_pieces_are_named():
  with pytest.raises(ValueError, match="begins with 'x'"):
    WORDS.encode('take x')
