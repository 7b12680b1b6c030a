"""The forms of rows with preferences, as TRL's trainers read them.

  pair      {prompt, chosen, rejected}; the prompt may be left out where both
            responses begin with it, and conversations may repeat it;
            score_chosen and score_rejected, where both are given, are rewards;
            `semantic_distance`, a number from 0 to 2, is that of the chosen
            response from its prompt (Sem-DPO); `samples` is a list of further
            responses without a label, of a policy (SampleSpread)
  label     {prompt, completion, label}, label true or false
  scores    {prompt, responses, scores}
  steps     {prompt, completions, labels}, a list of steps with a label each:
            true, false, or a number from 0 to 1; every step ends with a line
  response  {prompt, completion}, or {messages}: a whole conversation
  text      {text}: all of it is learned but its first character, the prompt

`response` may stand for `completion`. Texts are strings, or conversations:
lists of turns (tasks.messages). Of a row with conversations `tools` and
`chat_template_kwargs` are variables of the chat template. Rows with `images` or
an `image` are refused. All other fields are ignored.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, NoReturn

from rl_jax.tasks.base import RecordedResponse
from rl_jax.tasks.messages import (
  check_no_images,
  check_prompt,
  read_message,
  template_arguments,
)
from rl_jax.tasks.sources import BadRowError

FORMS = ('pair', 'label', 'scores', 'steps', 'response', 'text')
STEP_END = '\n'
MOST = 3.4e38  # of a score: training computes with float32
Text = str | tuple[dict[str, Any], ...]  # plain, or a conversation


def form_of(record: Mapping[str, Any], where: str) -> str:
  """The form of a record, one of FORMS, by the names of its fields.

  Raises: BadRowError if it has none.
  """
  if _given(record, 'chosen', 'rejected'):
    return 'pair'
  if _given(record, 'responses', 'scores'):
    return 'scores'
  if _given(record, 'completions', 'labels'):
    return 'steps'
  if _given(record, 'label'):
    return 'label'
  if _given(record, 'messages') or _completion_name(record):
    return 'response'
  if _given(record, 'text'):
    return 'text'
  raise BadRowError(
    where,
    'missing_field',
    'expected chosen and rejected; responses and scores; completion and label; '
    'completions and labels; completion; messages; or text. Present: '
    f'{sorted(map(str, record))}',
  )


def parse(
  record: Mapping[str, Any], form: str, where: str
) -> tuple[Text, tuple[RecordedResponse, ...]]:
  """(prompt, responses of the data).

  Raises: BadRowError naming what is wrong.
  """
  row = _Row(record, where)
  check_no_images(record, row.fail)
  if form == 'pair':
    return row.pair()
  if form == 'scores':
    return row.scores()
  if form == 'steps':
    return row.steps()
  if form == 'text':
    return row.whole_text()
  if form == 'label':
    prompt, text = row.prompt_and_completion()
    label = row.field('label')
    if not isinstance(label, bool):
      row.fail('wrong_label', f"field 'label' is {label!r}, not true or false")
    return prompt, (_recorded(text, float(label), int(label)),)
  if _given(record, 'messages'):
    prompt, text = row.conversation()
  else:
    prompt, text = row.prompt_and_completion()
  return prompt, (_recorded(text, 1.0, None),)


def arguments(
  record: Mapping[str, Any], prompt: Text, where: str
) -> dict[str, Any]:
  """Returns what a record says to the chat template that renders its prompt.

  Raises: BadRowError if it is malformed, or if the prompt is plain text, which
    no template renders.
  """
  row = _Row(record, where)
  found = template_arguments(record, row.fail)
  if found and isinstance(prompt, str):
    row.fail(
      'wrong_type',
      f'{", ".join(found)} for a chat template, but the texts are not messages',
    )
  return found


def aspects(
  record: Mapping[str, Any], names: tuple[str, ...], form: str, where: str
) -> tuple[float | None, ...]:
  """Numbers that rate the one response of a record, None where one is missing.

  Raises: BadRowError if it has several responses, or no or a wrong number.
  """
  row = _Row(record, where)
  if form not in ('response', 'label'):
    row.fail('other_form', f'aspects rate one response, and the form is {form}')
  values = [record.get(name) for name in names]
  if all(value is None for value in values):
    row.fail('missing_field', f'no field of {names} has a number')
  return tuple(
    None if value is None else row.number(value, name)
    for name, value in zip(names, values, strict=True)
  )


class _Row:
  """A record and its place."""

  def __init__(self, record, where):
    self._record, self._where = record, where

  def fail(self, kind: str, problem: str) -> NoReturn:
    raise BadRowError(self._where, kind, problem)

  def field(self, name):
    if self._record.get(name) is None:
      present = sorted(k for k, v in self._record.items() if v is not None)
      self.fail(
        'missing_field', f'field {name!r} is missing; present: {present}'
      )
    return self._record[name]

  def number(self, value, name) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
      self.fail('wrong_score', f'{value!r} in {name} is not a number')
    if not -MOST <= value <= MOST:
      self.fail(
        'wrong_score',
        f'{value!r:.40} in {name} is not finite, or larger than {MOST:g}',
      )
    return float(value)

  def text(self, value, name) -> Text:
    """A text that is not empty, or a conversation."""
    if isinstance(value, str):
      if not value:
        self.fail(f'empty_{name}', f'field {name!r} is empty')
      return value
    if not isinstance(value, (list, tuple)):
      kind = type(value).__name__
      self.fail(
        'wrong_type', f'field {name!r} is {kind}, neither text nor messages'
      )
    if not value:
      self.fail(f'empty_{name}', f'field {name!r} has no messages')
    return tuple(
      read_message(turn, name, number, self.fail)
      for number, turn in enumerate(value)
    )

  def completion(self, value, name, prompt) -> Text:
    """A text of the kind of the prompt; a conversation continues with a turn of
    the assistant and ends with one."""
    text = self.text(value, name)
    if isinstance(text, str) != isinstance(prompt, str):
      self.fail(
        'wrong_type',
        f'field {name!r} and the prompt must both be text or both messages',
      )
    if not isinstance(text, str):
      for place, message in (('first', text[0]), ('last', text[-1])):
        if message['role'] != 'assistant':
          self.fail(
            'wrong_roles',
            f'the {place} message of {name!r} is of the role '
            f'{message["role"]!r}, not assistant',
          )
    return text

  def prompt(self) -> Text:
    text = self.text(self.field('prompt'), 'prompt')
    if not isinstance(text, str):
      check_prompt(text, self.fail)
    return text

  def prompt_and_completion(self):
    prompt = self.prompt()
    name = _completion_name(self._record) or 'completion'
    return prompt, self.completion(self.field(name), name, prompt)

  def conversation(self):
    """The prompt ends before the first turn of the assistant."""
    messages = self.text(self.field('messages'), 'messages')
    if isinstance(messages, str):
      self.fail('wrong_type', "field 'messages' is text, not messages")
    roles = [message['role'] for message in messages]
    if 'assistant' not in roles[1:]:
      self.fail(
        'wrong_roles', f'no turn of the assistant after a prompt: {roles}'
      )
    first = roles.index('assistant')
    if not first:
      self.fail('wrong_roles', 'the conversation begins with the assistant')
    prompt, rest = messages[:first], messages[first:]
    check_prompt(prompt, self.fail)
    return prompt, self.completion(rest, 'messages', prompt)

  def whole_text(self):
    text = self.field('text')
    if not isinstance(text, str) or len(text) < 2:
      self.fail(
        'wrong_type', f"field 'text' is {text!r}: too short, or no text"
      )
    return text[0], (_recorded(text[1:], 1.0, None),)

  def pair(self):
    names = ('chosen', 'rejected')
    texts = [self.text(self.field(name), name) for name in names]
    turns = [text for text in texts if not isinstance(text, str)]
    whole = len(turns) == 2 and turns[0][0]['role'] != 'assistant'
    if texts[0] == texts[1]:
      self.fail('equal_responses', 'chosen and rejected are equal')
    if self._record.get('prompt') is not None and not whole:
      prompt = self.prompt()
    else:
      prompt, *texts = self._common(*texts)
      self._check_repeated(prompt)
    texts = [
      self.completion(text, name, prompt)
      for text, name in zip(texts, names, strict=True)
    ]
    if texts[0] == texts[1]:
      self.fail('equal_responses', 'chosen and rejected are equal')
    rewards, scored = (1.0, 0.0), [f'score_{name}' for name in names]
    if _given(self._record, *scored):
      rewards = tuple(self.number(self.field(x), x) for x in scored)
    chosen, rejected = map(_recorded, texts, rewards, (1, 0))
    return prompt, (
      dataclasses.replace(chosen, distance=self.distance()),
      rejected,
      *self.samples(prompt),
    )

  def samples(self, prompt):
    """Responses without a label, of reward 0."""
    found = self._record.get('samples')
    if found is None:
      return ()
    if not isinstance(found, (list, tuple)):
      self.fail('wrong_type', "'samples' must be a list of responses")
    texts = (self.completion(text, 'samples', prompt) for text in found)
    return tuple(_recorded(text, 0.0, None) for text in texts)

  def _check_repeated(self, common):
    """A prompt of turns in front of whole conversations must be theirs."""
    given = self._record.get('prompt')
    if not isinstance(given, (list, tuple)):
      return
    given = self.text(given, 'prompt')
    if common[: len(given)] != given:
      self.fail(
        'other_prompt',
        "field 'prompt' is not how the conversations of 'chosen' and "
        "'rejected' begin",
      )

  def distance(self) -> float | None:
    """The distance of the chosen response from its prompt, or None."""
    found = self._record.get('semantic_distance')
    if found is None:
      return None
    number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not number or not 0 <= found <= 2:
      self.fail(
        'wrong_distance',
        f"field 'semantic_distance' is {found!r}, not a number from 0 to 2",
      )
    return float(found)

  def _common(self, chosen, rejected):
    """(what both begin with, the rests): texts are not cut after a space.

    Where one response is the beginning of the other its end is not a prompt.
    """
    if isinstance(chosen, str) != isinstance(rejected, str):
      self.fail(
        'wrong_type', 'chosen is text and rejected messages, or reverse'
      )
    end, least = 0, min(len(chosen), len(rejected)) - 1
    while end < least and chosen[end] == rejected[end]:
      end += 1
    if isinstance(chosen, str) and end and chosen[end - 1] == ' ':
      end -= 1
    if not end:
      self.fail('missing_field', "no field 'prompt', and no common beginning")
    if not isinstance(chosen, str):
      check_prompt(chosen[:end], self.fail)
    return chosen[:end], chosen[end:], rejected[end:]

  def scores(self):
    prompt = self.prompt()
    responses, scores = self.field('responses'), self.field('scores')
    if not isinstance(responses, (list, tuple)) or not isinstance(
      scores, (list, tuple)
    ):
      self.fail('wrong_type', "'responses' and 'scores' must be lists")
    if len(responses) != len(scores) or len(scores) < 2:
      self.fail(
        'wrong_length',
        f'{len(responses)} responses and {len(scores)} scores; expected as '
        'many of each, at least 2',
      )
    scores = [self.number(score, 'scores') for score in scores]
    texts = [self.completion(text, 'responses', prompt) for text in responses]
    return prompt, tuple(
      _recorded(text, score, None)
      for text, score in zip(texts, scores, strict=True)
    )

  def steps(self):
    prompt = self.prompt()
    steps, labels = self.field('completions'), self.field('labels')
    if not all(isinstance(x, (list, tuple)) for x in (steps, labels)):
      self.fail('wrong_type', "'completions' and 'labels' must be lists")
    if not isinstance(prompt, str) or not all(
      isinstance(step, str) and step for step in steps
    ):
      self.fail('wrong_type', 'steps and their prompt must be texts, not empty')
    if len(steps) != len(labels) or not steps:
      self.fail(
        'wrong_length',
        f'{len(steps)} steps and {len(labels)} labels; expected as many',
      )
    for label in labels:
      if not isinstance(label, (bool, int, float)) or not 0 <= label <= 1:
        self.fail('wrong_label', f'{label!r} in labels is not from 0 to 1')
    ended = tuple(step.rstrip(STEP_END) + STEP_END for step in steps)
    return prompt, (
      RecordedResponse(
        text=''.join(ended),
        reward=float(min(labels)),
        steps=ended,
        step_labels=tuple(map(float, labels)),
      ),
    )


def _recorded(text: Text, reward: float, label: int | None) -> RecordedResponse:
  if isinstance(text, str):
    return RecordedResponse(text=text, reward=reward, label=label)
  return RecordedResponse(messages=text, reward=reward, label=label)


def _given(record, *names):
  """Returns whether all fields are there: tables have empty ones."""
  return all(record.get(name) is not None for name in names)


def _completion_name(record):
  names = ('completion', 'response')
  return next((name for name in names if _given(record, name)), None)
