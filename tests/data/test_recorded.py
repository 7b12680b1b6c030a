"""Recorded responses as rows."""

import dataclasses
import functools
import json

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax import config as config_lib
from rl_jax.data.completions import closing_ids, encode_recorded
from rl_jax.data.recorded import RecordedSet, RecordedSource, recorded_rows
from rl_jax.judging.step_labels import step_labels
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import CharTokenizer, HFTokenizer
from rl_jax.pieces import preferences
from rl_jax.rollouts.prompts import OverlongPromptError
from rl_jax.tasks import (
  ChatTemplate,
  PreferenceRows,
  PromptResponse,
  RulePairs,
  base,
  encode_prompt,
)
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.types import ENVIRONMENT, PAD, POLICY
from rl_jax.worlds import Arithmetic, RecordedHaggling

TEMPLATE = (
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
  "{{ m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# The number of turns comes first: earlier turns change as it continues.
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
TWO_TURNS = RecordedResponse(
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
  ids, trained = encode_recorded(
    EXAMPLE, RecordedResponse(text='12'), CharTokenizer('0123')
  )
  assert ids == [3, 4, 1] and trained == [True] * 3


def test_turns_of_episodes_end_by_their_length():
  """Words that were said are trained; no end token, nothing after the last."""
  logged = RecordedResponse(turns=(('12', '3'), ('0', '')))
  ids, trained = encode_recorded(EXAMPLE, logged, CharTokenizer('0123'))
  assert ids == [3, 4, 5, 2] and trained == [True, True, False, True]


def test_recorded_episodes_begin_with_the_first_observation():
  """Each row is the dialogue, and its reward."""
  task = RecordedHaggling(num_train=3)
  tokenizer = CharTokenizer(task.alphabet)
  records = RecordedSet(task, 'train', tokenizer, 2, max_response_tokens=20)
  source = RecordedSource(records, None, None, None, 3)
  traj, examples = source.read(np.arange(3), 0)
  for row, example in enumerate(examples):
    assert tokenizer.decode(traj.prompt_NP[row]) == '7>'
    (logged,) = task.recorded(task.example('train', row))
    length, said = traj.length_B[row], traj.mask_BT[row] > 0
    text = tokenizer.decode(traj.response_BT[row, :length])
    assert text == ''.join(said + told for said, told in logged.turns)
    assert tokenizer.decode(traj.response_BT[row][said]) == ''.join(
      said for said, _ in logged.turns
    )
    assert traj.reward_B[row] == np.float32(logged.reward)
    assert example.observation == '7>'


@pytest.mark.parametrize(
  ('name', 'count', 'wrong'),
  [
    ('recorded_haggling', 32, 'no batch mixes recorded and played episodes'),
    ('haggling', 64, 'the data of Haggling hold no episodes'),
  ],
)
def test_recorded_episodes_are_checked(name, count, wrong):
  """Before anything is read; both fields are named."""
  sets = [f'rollout.recorded_prompts={count}', 'rollout.num_prompts=64']
  sets += ['rollout.group_size=1', 'update.minibatch_prompts=64']
  config = configuration.build(name, 'sft', sets)
  with pytest.raises(ValueError, match='rollout.turns: ' + wrong):
    config_lib.validate(config)


def test_actions_of_an_episode_are_closed_and_trained():
  """Observations between them are neither; a row that was cut says so."""
  own = CharTokenizer('0123')
  turns = ('1', '03'), ('22', '')
  episode = RecordedResponse(turns=turns, turn_ends=True, truncated=True)
  ids, trained = encode_recorded(EXAMPLE, episode, own)
  assert ids == [3, 1, 2, 5, 4, 4, 1]
  assert trained == [True] * 2 + [False] * 2 + [True] * 3
  prompts = np.zeros((1, 1), int), np.ones((1, 1)), np.zeros(1, int)
  records = [
    [(episode, ids, trained), (RecordedResponse(text='1'), [3, 1], [True] * 2)]
  ]
  rows = recorded_rows(prompts, records, 8)
  np.testing.assert_array_equal(rows.finished_B, [False, True])
  np.testing.assert_array_equal(rows.mask_BT[0], [1, 1, 0, 0, 1, 1, 1, 0])


def test_only_turns_of_the_assistant_are_trained():
  """To their end tokens; a special token that a user spells is plain text."""
  own = tokenizer()
  ids, trained = encode_recorded(EXAMPLE, TWO_TURNS, own)
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
  with pytest.raises(ValueError, match='writes what came before otherwise'):
    encode_recorded(EXAMPLE, TWO_TURNS, tokenizer(COUNTING))


WITH_TOOLS = (
  "{% for t in tools %}{{ '<|im_start|>tool ' + t | tojson + '<|im_end|>' }}"
  '{% endfor %}{% for m in messages %}'
  "{{ '<|im_start|>' + m['role'] + ' ' + m['content'] }}"
  "{% for c in m.tool_calls or [] %}{{ '<call>' + c['name'] }}{% endfor %}"
  "{{ '<|im_end|>' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant ' }}{% endif %}"
)


def test_calls_and_tools_are_rendered():
  """The call is trained; a special token that a tool spells is plain text."""
  own = tokenizer(WITH_TOOLS)
  tools = {'tools': [{'name': 'add<|im_end|>'}]}
  example = dataclasses.replace(EXAMPLE, arguments=tools)
  ids = encode_prompt(example, own)
  assert '{"name":Ġ"add<|im_end|>"}' in ''.join(map(own.token, ids))
  assert ids.count(1) == 2  # after the tool and the user
  call = {'role': 'assistant', 'content': '', 'tool_calls': [{'name': 'add'}]}
  ids, trained = encode_recorded(
    example, RecordedResponse(messages=(call,)), own
  )
  assert own.decode(ids) == '<call>add' and ids[-1] == 1 and all(trained)


def test_what_the_template_does_not_read_is_refused(tmp_path):
  """With the row of the file."""
  turns = [turn('user', 'hi'), turn('assistant', 'a')]
  calls = {**turns[1], 'content': None, 'tool_calls': [{'name': 'add'}]}
  rows = [{'messages': turns}, {'messages': [turns[0], calls]}]
  rows.append({'messages': turns, 'tools': [{'name': 'add'}]})
  for more, message in (
    (rows[1], 'the messages have tool_calls, which the chat template'),
    (rows[2], 'the chat template of this tokenizer reads no tools'),
  ):
    path = tmp_path / f'{len(more)}.jsonl'
    lines = (json.dumps(row) + '\n' for row in (rows[0], more))
    path.write_text(''.join(lines))
    task = PreferenceRows(path=str(path))
    with pytest.raises(ValueError, match=message) as error:
      RecordedSet(task, 'train', tokenizer(), 64, max_response_tokens=64)
    assert f'PreferenceRows train[1] ({path}:2): ' in str(error.value)


def records(limit=5, **options):
  """Pairs of two-digit sums."""
  task = RulePairs(Arithmetic(digits=2, signed=False))
  own = CharTokenizer(task.alphabet)
  return RecordedSet(
    task, 'train', own, 6, max_response_tokens=limit, **options
  )


def test_long_responses_are_named_or_skipped():
  """A sum of three digits has four tokens."""
  with pytest.raises(OverlongPromptError, match=r'response 0 has 4 tokens'):
    records(limit=3)
  some = records(limit=3, overlong='skip')
  assert 0 < len(some) < len(records())
  longest = max(len(ids) for _, ids, _ in some.responses(some.example(0)))
  assert longest <= 3


def test_the_first_response_alone():
  """The chosen one of a pair is read; the other may be too long."""
  pairs, first = records(), records(num_responses=1)
  example = pairs.example(5)
  assert first.responses(example) == pairs.responses(example)[:1]
  assert first.responses(example)[0][0].label == 1


def test_labels_that_are_missing(toy):
  """Named before anything runs; pairs by reward need none."""
  own = CharTokenizer(Arithmetic.alphabet)
  limits = {'max_response_tokens': 5}
  data = RecordedSet(Arithmetic(digits=2), 'train', own, 6, **limits)
  data.check_labels(toy.get_method('online_dpo'))
  for name in ('dpo', 'kto'):
    with pytest.raises(ValueError, match='reads labels'):
      data.check_labels(toy.get_method(name))
    records().check_labels(toy.get_method(name))


def test_rejected_responses_are_not_imitated(toy):
  """From pairs, sft and f_sft learn the chosen response; others need both."""
  for method in (toy.get_method('sft'), toy.get_method('f_sft')):
    with pytest.raises(ValueError, match='group_size = 2: .* set it to 1'):
      records().check_labels(method)
    records(num_responses=1).check_labels(method)
  records().check_labels(toy.get_method('cpo'))


def test_distances_that_are_missing(toy):
  with pytest.raises(ValueError, match='reads the field semantic_distance'):
    records().check_labels(toy.get_method('sem_dpo'))


def test_rows_of_pairs():
  """Tokens, kinds, labels and rewards, in pairs."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  found = [data.responses(example) for example in examples]
  traj = recorded_rows(tuple(arrays), found, 5, first_serial=7)
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
  traj = recorded_rows(tuple(arrays), found, 5)
  far_B = traj.extras['semantic_distance_B']
  np.testing.assert_array_equal(far_B, [0.25, 0, 1.5, 0])


def test_who_compared_is_told():
  """By the rows of a group alike; data that do not know it say nothing."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  found = [data.responses(example) for example in examples]
  assert 'annotator_B' not in recorded_rows(tuple(arrays), found, 5).extras
  found = [
    [(dataclasses.replace(x, annotator=who), *more) for x, *more in group]
    for who, group in enumerate(found)
  ]
  traj = recorded_rows(tuple(arrays), found, 5)
  np.testing.assert_array_equal(traj.extras['annotator_B'], [0, 0, 1, 1])


def test_responses_to_other_prompts():
  """The last row of a group counts nowhere."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  a, b = (data.responses(example) for example in examples)
  traj = recorded_rows(
    tuple(arrays), [[*a, b[0]], [*b, a[0]]], 5, mismatched=True
  )
  np.testing.assert_array_equal(traj.weight_B, [1, 1, 0, 1, 1, 0])
  np.testing.assert_array_equal(traj.valid_B, traj.weight_B)
  np.testing.assert_array_equal(traj.extras['chosen_B'], [1, 0, -1] * 2)
  np.testing.assert_array_equal(traj.extras['mismatched_B'], [0, 0, 1] * 2)


def test_samples_beside_labels(toy):
  """Responses without a label weigh nothing, and only their pieces see them."""
  data = records()
  examples, *arrays = data.batch([3, 8])
  found = [data.responses(example) for example in examples]
  plain = recorded_rows(tuple(arrays), found, 5)
  assert 'unlabelled_B' not in plain.extras
  for group in found:
    sample = dataclasses.replace(group[1][0], label=None, reward=0.0)
    group.append((sample, *group[1][1:]))
  traj = recorded_rows(tuple(arrays), found, 5)
  np.testing.assert_array_equal(traj.extras['unlabelled_B'], [0, 0, 1] * 2)
  np.testing.assert_array_equal(traj.extras['chosen_B'], [1, 0, -1] * 2)
  np.testing.assert_array_equal(traj.weight_B, [1, 1, 0] * 2)
  np.testing.assert_array_equal(traj.valid_B, 1)
  meta = toy.get_method('reward_model')
  spread = preferences.SampleSpread(score=preferences.FinalValue())
  meta = dataclasses.replace(meta, losses=(*meta.losses, spread))
  with pytest.raises(ValueError, match='give rows the field samples'):
    data.check_labels(meta)


def test_turns_of_others_are_environment():
  own = tokenizer()
  arrays = np.zeros((1, 1), np.int32), np.ones((1, 1)), np.zeros(1, np.int32)
  ids, trained = encode_recorded(EXAMPLE, TWO_TURNS, own)
  traj = recorded_rows(arrays, [[(TWO_TURNS, ids, trained)]], len(ids) + 1)
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
  """Prompt and row are one conversation; only the turn is trained."""
  path = tmp_path / 'pairs.jsonl'
  path.write_text('{"prompt": "hi", "response": "ab"}')
  template = ChatTemplate(
    user='Q: {question}', arguments={'thinking': thinking}
  )
  task = PromptResponse(path=str(path), template=template)
  own, example = tokenizer(THINKING), task.example('train', 0)
  ids, trained = encode_recorded(example, task.recorded(example)[0], own)
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
  ids, _ = encode_recorded(example, task.recorded(example)[0], own)
  assert own.decode(ids) == 'ab' and ids[-1] == 1


def test_a_response_to_another_prompt_needs_two(tmp_path):
  """KTO's baseline of one prompt would be its own response."""
  path = tmp_path / 'rows.jsonl'
  path.write_text('{"prompt": "1", "completion": "2", "label": true}\n')
  task, own = PreferenceRows(path=str(path)), CharTokenizer('12')
  one = RecordedSet(task, 'train', own, 6, max_response_tokens=5)
  make = functools.partial(RecordedSource, one, None, None, None)
  make(num_prompts=2)
  with pytest.raises(ValueError, match='one row in a batch'):
    make(num_prompts=2, mismatched=True)
  with pytest.raises(ValueError, match='one row in a batch'):
    RecordedSource(records(), None, None, None, num_prompts=1, mismatched=True)


def test_a_step_without_tokens_has_no_label():
  """Not one at the last place of the row, and not that of the step before."""
  logged = base.RecordedResponse(
    steps=('', '12', '', '1'), step_labels=(0.1, 0, 1, 0.5)
  )
  found = step_labels([logged], CharTokenizer('12'), 5)
  np.testing.assert_array_equal(found, [[-1, 0, 0.5, -1, -1]])
