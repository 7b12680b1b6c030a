"""Tokenizers of directories whose model has fewer tokens."""

import pytest
import tokenizers

from rl_jax.models import tokenizer as tokenizer_lib
from rl_jax.models.files import gguf_import, tokenizer_files
from rl_jax.models.tokenizer import HFTokenizer

TOKENS = ['<|end|>', 'a', 'b', 'i', 'm', 'g', '<', '>']
SIZE = len(TOKENS)


def test_special_tokens_that_the_model_lacks_are_left_out(tmp_path):
  """Unless the chat template writes them: then it does not fit the model."""
  backend = gguf_import.byte_level_bpe('default', TOKENS, [], [3] + [1] * 7)
  backend.add_special_tokens([tokenizers.AddedToken('<img>', special=True)])
  tokenizer = HFTokenizer(
    backend, eos_ids=(0,), pad_id=0, chat_template='{{ messages[0].content }}'
  )
  tokenizer_files.save_tokenizer(tokenizer, str(tmp_path))

  def encode(one):
    return one.encode('a<img>b<|end|>', control=True)

  whole = tokenizer_files.load_tokenizer(str(tmp_path))
  assert encode(whole) == [1, SIZE, 2, 0]
  loaded = tokenizer_files.load_tokenizer(str(tmp_path), SIZE)
  tokenizer_lib.check_vocabulary(loaded, SIZE, 'x')
  assert encode(loaded) == [1, 6, 3, 4, 5, 7, 2, 0]
  assert loaded.decode(encode(loaded)) == 'a<img>b'
  (tmp_path / 'chat_template.jinja').write_text('<img>{{ messages }}')
  kept = tokenizer_files.load_tokenizer(str(tmp_path), SIZE)
  with pytest.raises(ValueError, match='has 9 ids, the model has 8'):
    tokenizer_lib.check_vocabulary(kept, SIZE, 'x')
