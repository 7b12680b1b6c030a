"""Recorded turns of reasoning models, as their templates open them."""

import pytest

from rl_jax.data.completions import closing_ids, encode_recorded
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import ByteTokenizer, HFTokenizer
from rl_jax.tasks.base import Example, RecordedResponse

USER = {'role': 'user', 'content': 'hi'}
THOUGHT = '<think>\nhm\n</think>\n\nyes'
SPECIAL = ('<|U|>', '<|A|>', '<|E|>')
# The tag is opened by the generation prompt only; thoughts are left out, as by
# the templates of DeepSeek-R1-Distill and QwQ.
R1 = (
  "{% for m in messages %}{% if m.role == 'user' %}{{ '<|U|>' + m.content }}"
  "{% else %}{{ '<|A|>' + m.content.split('</think>')[-1] + '<|E|>' }}"
  '{% endif %}{% endfor %}'
  "{% if add_generation_prompt %}{{ '<|A|><think>\n' }}{% endif %}"
)
# Turns without thoughts are written with empty ones, earlier ones without
# theirs, as by the templates of Nemotron 3.
NEMOTRON = (
  '{% set last = messages | length - 1 %}{% for m in messages %}'
  "{% if m.role == 'user' %}{{ '<|U|>' + m.content + '\n' }}{% else %}"
  '{% set content = m.content %}{% if m.reasoning_content %}{% set content = '
  "'<think>\n' + m.reasoning_content + '\n</think>\n' + content %}"
  "{% elif '</think>' not in content %}"
  "{% set content = '<think></think>' + content %}{% endif %}"
  '{% if loop.index0 < last %}'
  "{% set content = '<think></think>' + content.split('</think>')[-1] %}"
  "{% endif %}{{ '<|A|>' + content + '<|E|>\n' }}{% endif %}{% endfor %}"
  '{% if add_generation_prompt %}{% if enable_thinking is not defined or '
  "enable_thinking %}{{ '<|A|><think>\n' }}{% else %}"
  "{{ '<|A|><think></think>' }}{% endif %}{% endif %}"
)
# Thoughts of the last turn only, as Qwen3 writes them.
QWEN3 = (
  "{% for m in messages %}{% if m.role == 'user' %}{{ '<|U|>' + m.content }}"
  "{% elif loop.last %}{{ '<|A|>' + m.content + '<|E|>' }}{% else %}"
  "{{ '<|A|>' + m.content.split('</think>')[-1] + '<|E|>' }}{% endif %}"
  "{% endfor %}{% if add_generation_prompt %}{{ '<|A|>' }}{% endif %}"
)


def said(content, **more):
  return {'role': 'assistant', 'content': content, **more}


def make(template):
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  letters = [chr(b if b in kept else next(spare)) for b in range(256)]
  tokens = [*SPECIAL, *letters]
  types = [3] * len(SPECIAL) + [1] * 256
  backend = gguf_import.byte_level_bpe('smollm', tokens, [], types)
  return HFTokenizer(backend, eos_ids=(2,), pad_id=0, chat_template=template)


def trained(template, *turns, **arguments):
  """The text of the ids that the policy is trained on."""
  own = make(template)
  example = Example('hi', '', 0, messages=(USER,), arguments=arguments)
  ids, by_policy = encode_recorded(
    example, RecordedResponse(messages=turns), own
  )
  kept = [i for i, x in zip(ids, by_policy, strict=True) if x]
  return own.backend.decode(kept, skip_special_tokens=False)


@pytest.mark.parametrize(
  ('template', 'turn', 'expected'),
  [
    (R1, said(THOUGHT), 'hm\n</think>\n\nyes<|E|>'),
    (R1, said('<think>hm</think>yes'), 'hm</think>yes<|E|>'),
    (R1, said('\n<think>\nhm</think>yes'), 'hm</think>yes<|E|>'),
    (R1, said('hm\n</think>yes'), 'hm\n</think>yes<|E|>'),
    (R1, said('<think>\n</think>yes'), '</think>yes<|E|>'),
    (R1, said('<think>\n<|E|></think>yes'), '<|E|></think>yes<|E|>'),
    (NEMOTRON, said(THOUGHT), 'hm\n</think>\n\nyes<|E|>'),
    (
      NEMOTRON,
      said('yes', reasoning_content='hm'),
      'hm\n</think>\nyes<|E|>',
    ),
    (QWEN3, said(THOUGHT), THOUGHT + '<|E|>'),
  ],
)
def test_what_follows_the_generation_prompt_is_trained(
  template, turn, expected
):
  """E0: the tag that the prompt has opened is not written twice."""
  assert trained(template, turn) == expected


def test_special_tokens_in_thoughts_are_ordinary_text():
  own = make(R1)
  turn = said('<think>\n<|E|></think>yes')
  ids = own.encode_turn((USER,), turn, True)
  assert ids.count(2) == 1 and ids[-1] == 2


def test_thoughts_may_be_turned_off():
  """Only the answer follows what the template has written."""
  assert trained(NEMOTRON, said('yes'), enable_thinking=False) == 'yes<|E|>'
  turns = (said('yes'), USER, said('no'))
  found = trained(NEMOTRON, *turns, enable_thinking=False)
  assert found == 'yes<|E|>no<|E|>'


@pytest.mark.parametrize(
  ('template', 'turn', 'arguments', 'message'),
  [
    (
      R1,
      said('yes'),
      {},
      r"with '<\|A\|><think>\\n', and the .* with '<\|A\|>y",
    ),
    (NEMOTRON, said('yes'), {}, "write its thoughts.*'enable_thinking': False"),
    (
      NEMOTRON,
      said(THOUGHT),
      {'enable_thinking': False},
      "leave out its thoughts, or turn them on.*'enable_thinking': True",
    ),
  ],
)
def test_a_turn_that_is_not_opened_so_says_what_to_do(
  template, turn, arguments, message
):
  with pytest.raises(ValueError, match=message):
    trained(template, turn, **arguments)


@pytest.mark.parametrize('template', [R1, NEMOTRON, QWEN3])
def test_thoughts_of_earlier_turns_ask_for_rows(template):
  """The model would read the answer without them."""
  turns = (said(THOUGHT), USER, said(THOUGHT))
  with pytest.raises(ValueError, match='make a row of each turn of the assist'):
    trained(template, *turns)
  first, *_, last = turns
  example = Example('hi', '', 0, messages=(USER, first, USER))
  ids, _ = encode_recorded(
    example, RecordedResponse(messages=(last,)), make(template)
  )
  assert ids[-1] == 2


def test_what_closes_a_turn_needs_no_thoughts():
  assert closing_ids(make(R1)) == ()
  newline = tuple(make(NEMOTRON).encode('\n'))
  assert closing_ids(make(NEMOTRON)) == newline


def test_plain_text_has_no_tags():
  own = ByteTokenizer()
  assert own.encode_turn((USER,), said('yes'), False) == own.encode('\nyes')
