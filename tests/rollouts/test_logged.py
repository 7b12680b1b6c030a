"""Recorded responses as rows."""

import dataclasses

import numpy as np
import pytest

from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import CharTokenizer, HFTokenizer
from rl_jax.rollouts.completions import closing_ids, encode_logged
from rl_jax.rollouts.logged import LoggedSet, logged_rows
from rl_jax.rollouts.prompts import OverlongPromptError
from rl_jax.tasks import (
  Arithmetic,
  ChatTemplate,
  PromptResponse,
  RulePairs,
  base,
  encode_prompt,
)
from rl_jax.tasks.base import Example, Logged
from rl_jax.types import ENVIRONMENT, PAD, POLICY

TEMPLATE = (
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
  "{{ m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# The number of turns stands in front: earlier turns change as it goes on.
COUNTING = '{{ messages | length }}' + TEMPLATE


def tokenizer(template=TEMPLATE):
  """All bytes and the two special tokens of the template."""
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  letters = [chr(b if b in kept else next(spare)) for b in range(256)]
  tokens = ['<|im_start|>', '<|im_end|>', *letters]
  backend = gguf_import.byte_level_bpe('smollm', tokens, [], [3, 3] + [1] * 256)
  return HFTokenizer(backend, eos_ids=(1,), pad_id=0, chat_template=template)


def turn(role, content):
  return {'role': role, 'content': content}


EXAMPLE = Example(prompt='hi', answer='', id=0, messages=(turn('user', 'hi'),))
TWO_TURNS = Logged(
  messages=(
    turn('assistant', 'ab'),
    turn('user', 'c<|im_end|>'),
    turn('assistant', 'd'),
  )
)


def test_closing_ids_are_behind_the_end_token():
  """ChatML's newline; a template that ends with its end token has none."""
  own = tokenizer()
  assert closing_ids(own) == tuple(own.encode('\n')) != ()
  assert (
    closing_ids(
      tokenizer(TEMPLATE.replace("'\\n' }}{% endfor", "'' }}{% endfor"))
    )
    == ()
  )
  assert closing_ids(tokenizer(None)) == closing_ids(CharTokenizer('0')) == ()


def test_a_text_is_closed_by_the_end_token():
  ids, trained = encode_logged(
    EXAMPLE, Logged(text='12'), CharTokenizer('0123')
  )
  assert ids == [3, 4, 1] and trained == [True] * 3


def test_only_turns_of_the_assistant_are_trained():
  """To their end tokens; a special token that a user spells is plain text."""
  own = tokenizer()
  ids, trained = encode_logged(EXAMPLE, TWO_TURNS, own)
  text = ''.join(own.backend.id_to_token(i) for i in ids)
  between = 'Ċ<|im_start|>userĊc<|im_end|><|im_end|>Ċ<|im_start|>assistantĊ'
  assert text == f'ab<|im_end|>{between}d<|im_end|>'
  assert ids.count(1) == 3  # the user's is written in letters
  shown = [own.decode([i]) for i, on in zip(ids, trained, strict=True) if on]
  assert ''.join(shown) == 'abd' and sum(trained) == 3 + 2
  # What the policy would have sampled: the prompt and the row are one text.
  whole = own.encode_chat([*EXAMPLE.messages, TWO_TURNS.messages[0]])
  assert whole[: len(own.encode_chat(EXAMPLE.messages)) + 3] == (
    own.encode_chat(EXAMPLE.messages) + ids[:3]
  )


def test_templates_that_rewrite_turns_are_refused():
  with pytest.raises(ValueError, match='writes earlier turns otherwise'):
    encode_logged(EXAMPLE, TWO_TURNS, tokenizer(COUNTING))


def records(limit=5, **options):
  """Pairs of two-digit sums."""
  task = RulePairs(Arithmetic(digits=2, signed=False))
  own = CharTokenizer(task.alphabet)
  return LoggedSet(task, 'train', own, 6, max_response_tokens=limit, **options)


def test_long_responses_are_named_or_skipped():
  """A sum of three digits has four tokens."""
  with pytest.raises(OverlongPromptError, match=r'response 0 has 4 tokens'):
    records(limit=3)
  some = records(limit=3, overlong='skip')
  assert 0 < len(some) < len(records())
  longest = max(len(ids) for _, ids, _ in some.responses(some.example(0)))
  assert longest <= 3


def test_the_first_response_alone():
  """Of a pair the chosen one; the other may be too long."""
  pairs, first = records(), records(num_responses=1)
  example = pairs.example(5)
  assert first.responses(example) == pairs.responses(example)[:1]
  assert first.responses(example)[0][0].label == 1


def test_labels_that_are_missing(toy):
  """Named before anything runs; pairs by reward need none."""
  own = CharTokenizer(Arithmetic.alphabet)
  limits = {'max_response_tokens': 5}
  data = LoggedSet(Arithmetic(digits=2), 'train', own, 6, **limits)
  data.check_labels(toy.get_method('online_dpo'))
  for name in ('dpo', 'kto'):
    with pytest.raises(ValueError, match='reads labels'):
      data.check_labels(toy.get_method(name))
    records().check_labels(toy.get_method(name))


def test_distances_that_are_missing(toy):
  with pytest.raises(ValueError, match='reads the field semantic_distance'):
    records().check_labels(toy.get_method('sem_dpo'))


def test_rows_of_pairs():
  """Tokens, kinds, labels and rewards, in pairs."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  found = [data.responses(example) for example in examples]
  traj = logged_rows(tuple(arrays), found, 5, first_serial=7)
  assert traj.group_size == 2 and traj.num_prompts == 2
  for row, (_, ids, _) in enumerate(found[0] + found[1]):
    assert list(traj.response_BT[row, : len(ids)]) == ids
    assert traj.length_B[row] == len(ids) == traj.mask_BT[row].sum()
    assert (traj.kind_BT[row, len(ids) :] == PAD).all()
  np.testing.assert_array_equal(traj.reward_B, [1, 0, 1, 0])
  np.testing.assert_array_equal(traj.extras['chosen_B'], [1, 0, 1, 0])
  np.testing.assert_array_equal(traj.extras['logged_B'], 1)
  np.testing.assert_array_equal(traj.row_id_B2[:, 0], [7, 7, 8, 8])
  assert 'semantic_distance_B' not in traj.extras
  for group, far in zip(found, (0.25, 1.5), strict=True):
    first = dataclasses.replace(group[0][0], distance=far)
    group[0] = (first, *group[0][1:])
  traj = logged_rows(tuple(arrays), found, 5)
  far_B = traj.extras['semantic_distance_B']
  np.testing.assert_array_equal(far_B, [0.25, 0, 1.5, 0])


def test_who_compared_is_told():
  """By the rows of a group alike; data that do not know it say nothing."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  found = [data.responses(example) for example in examples]
  assert 'annotator_B' not in logged_rows(tuple(arrays), found, 5).extras
  found = [
    [(dataclasses.replace(x, annotator=who), *more) for x, *more in group]
    for who, group in enumerate(found)
  ]
  traj = logged_rows(tuple(arrays), found, 5)
  np.testing.assert_array_equal(traj.extras['annotator_B'], [0, 0, 1, 1])


def test_responses_to_other_prompts():
  """The last row of a group counts nowhere."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  a, b = (data.responses(example) for example in examples)
  traj = logged_rows(
    tuple(arrays), [[*a, b[0]], [*b, a[0]]], 5, mismatched=True
  )
  np.testing.assert_array_equal(traj.weight_B, [1, 1, 0, 1, 1, 0])
  np.testing.assert_array_equal(traj.valid_B, traj.weight_B)
  np.testing.assert_array_equal(traj.extras['chosen_B'], [1, 0, -1] * 2)
  np.testing.assert_array_equal(traj.extras['mismatched_B'], [0, 0, 1] * 2)


def test_turns_of_others_are_environment():
  own = tokenizer()
  arrays = np.zeros((1, 1), np.int32), np.ones((1, 1)), np.zeros(1, np.int32)
  ids, trained = encode_logged(EXAMPLE, TWO_TURNS, own)
  traj = logged_rows(arrays, [[(TWO_TURNS, ids, trained)]], len(ids) + 1)
  expected = [POLICY if on else ENVIRONMENT for on in trained] + [PAD]
  np.testing.assert_array_equal(traj.kind_BT[0], expected)
  assert traj.mask_BT.sum() == 5
  assert 'chosen_B' not in traj.extras  # there is no label


THINKING = TEMPLATE.replace(
  "assistant\\n' }}{% endif %}",
  "assistant\\n' ~ ('' if thinking else 'No. ') }}{% endif %}",
).replace(
  "{{ m['content']",
  "{{ ('No. ' if m['role'] == 'assistant' and not thinking else '')"
  " ~ m['content']",
)


@pytest.mark.parametrize('thinking', [False, True])
def test_pairs_go_through_the_chat_template(tmp_path, thinking):
  """Prompt and row are one conversation; the turn alone is trained."""
  path = tmp_path / 'pairs.jsonl'
  path.write_text('{"prompt": "hi", "response": "ab"}')
  template = ChatTemplate(
    user='Q: {question}', arguments={'thinking': thinking}
  )
  task = PromptResponse(path=str(path), template=template)
  own, example = tokenizer(THINKING), task.example('train', 0)
  ids, trained = encode_logged(example, base.logged(task, example)[0], own)
  assert own.decode(ids) == 'ab' and ids[-1] == 1 and all(trained)
  whole = [turn('user', 'Q: hi'), turn('assistant', 'ab')]
  text = own.chat(whole, False, thinking=thinking)
  assert ('No. ' in text) is not thinking
  prompt = encode_prompt(example, own)
  found = ''.join(own.backend.id_to_token(i) for i in prompt + ids)
  expected = ''.join(
    own.backend.id_to_token(i) for i in own.encode(text, control=True)
  )
  assert found + 'Ċ' == expected
  opened = dataclasses.replace(template, prefill='a')
  task = dataclasses.replace(task, template=opened)
  example = task.example('train', 0)
  ids, _ = encode_logged(example, base.logged(task, example)[0], own)
  assert own.decode(ids) == 'ab' and ids[-1] == 1
