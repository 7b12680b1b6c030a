"""Token ids of the questions of judges."""

import dataclasses

import pytest

from rl_jax.judging.judge_questions import questions
from rl_jax.models.judge_source import Judge
from rl_jax.runs.judges import Encode
from rl_jax.tasks.base import Example

EXAMPLE = Example(prompt='ab', answer='', id=0)
END, PAD = 1, 0


class Tokenizer:
  """Letters as their codes; a chat closes turns by END and a newline."""

  eos_ids = (END,)

  def encode_prompt(self, parts):
    return [ord(letter) for letter in ''.join(parts)]

  def encode_chat(self, messages):
    return [x for m in messages for x in self._turn(m)] + [ord('>')]

  def encode_added(self, before, after):
    del before
    messages, _ = after
    return self._turn(messages[-1])

  def _turn(self, message):
    return [*map(ord, message['content']), END, ord('\n')]


@pytest.mark.parametrize(
  'unscored, chat, expected',
  [
    # As rows of --method=reward_model end: after the end token.
    (None, False, [*map(ord, 'abxy'), END]),
    (None, True, [*map(ord, 'ab'), END, 10, *map(ord, '>xy'), END]),
    # As transformers reads a text: all that the template writes but pads.
    (PAD, False, [*map(ord, 'abxy')]),
    (PAD, True, [*map(ord, 'ab'), END, 10, *map(ord, '>xy'), END, 10]),
    (10, True, [*map(ord, 'ab'), END, 10, *map(ord, '>xy'), END]),
  ],
)
def test_values_are_read_where_their_model_was_trained(
  tiny, unscored, chat, expected
):
  source = Judge(reads='value', chat=chat)
  model = dataclasses.replace(tiny.CFG, vocab_size=200, unscored_id=unscored)
  (question,) = questions(source, EXAMPLE, {0: 'xy'})
  assert Encode(source, model, Tokenizer())(question) == expected


@pytest.mark.parametrize('reads', ['labels', 'text'])
def test_questions_stay_open(tiny, reads):
  source = Judge(reads=reads, template='{response}?')
  (question,) = questions(source, EXAMPLE, {0: 'xy'})
  encode = Encode(source, tiny.CFG, Tokenizer())
  assert encode(question) == [*map(ord, 'xy?')]
  chat = dataclasses.replace(source, chat=True)
  (question,) = questions(chat, EXAMPLE, {0: 'xy'})
  assert encode(question) == [*map(ord, 'xy?'), END, 10, ord('>')]
