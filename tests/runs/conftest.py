"""Configurations and comparisons that several tests of runs share."""

import jax
import pytest

from rl_jax.models import presets
from rl_jax.models.files import gguf_import, model_dir
from rl_jax.models.params import init_params
from rl_jax.models.tokenizer import HFTokenizer

TEMPLATE = (
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
  "{{ m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@pytest.fixture(scope='session')
def config(toy, make_config):
  """GRPO: groups, a reference, a KL term; evaluation and two checkpoints."""
  return make_config(
    toy.get_method('grpo'),
    iterations='40',
    evaluation__every='20',
    evaluation__num_samples='2',
  )


@pytest.fixture(scope='session')
def chat_model(tmp_path_factory):
  """A small model of bytes, with a chat template."""
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  letters = [chr(b if b in kept else next(spare)) for b in range(256)]
  tokens = ['<|im_start|>', '<|im_end|>', *letters]
  types = [3, 3] + [1] * 256
  tokenizer = HFTokenizer(
    gguf_import.byte_level_bpe('smollm', tokens, [], types),
    eos_ids=(1,),
    pad_id=0,
    chat_template=TEMPLATE,
  )
  cfg = presets.small(vocab_size=len(tokens), num_layers=1, width=16)
  params = init_params(cfg, jax.random.key(0))
  folder = str(tmp_path_factory.mktemp('models') / 'chat')
  model_dir.save_model(folder, cfg, params, tokenizer)
  return folder
