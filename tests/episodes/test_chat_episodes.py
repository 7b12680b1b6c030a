"""Episodes in chat form: ids are those of the whole conversation."""

import dataclasses
import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from rl_jax.decoding.cache_places import HostCache, Places
from rl_jax.decoding.slot_engine import Result
from rl_jax.episodes import slot_runner
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.turns import TurnConfig, turn_format
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import HFTokenizer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import (
  ChatTemplate,
  EvaluationSet,
  MarkedCalls,
  MemoryWindow,
  Mixture,
  MixturePart,
  PlainTemplate,
  QuestionAnswer,
  WithTools,
)
from rl_jax.tasks.base import TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.tasks.evaluation_set import judged
from rl_jax.types import ENVIRONMENT, POLICY
from rl_jax.worlds import Bandit

OWN = EvaluationSet('own', task=Bandit())


def mixed(*tasks):
  """A mixture of them."""
  parts = [MixturePart(f'part{k}', task) for k, task in enumerate(tasks)]
  return Mixture(tuple(parts))


CHATML = (
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
  "{{ m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
  "{% if think is false %}{{ 'no thoughts\\n' }}{% endif %}{% endif %}"
)
# As in SmolLM2's files: its own system message if there is none.
SMOLLM = (
  "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}"
  "{{ '<|im_start|>system\nYou are SmolLM<|im_end|>\n' }}{% endif %}"
  "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
  '{% endfor %}{% if add_generation_prompt %}'
  "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
T, TURNS = (
  400,
  TurnConfig(max_turns=3, max_turn_tokens=6, max_observation_tokens=40),
)
SAYS = ('<|im_end|> spelled', 'second', 'third')


def byte_tokenizer(template=CHATML):
  """All bytes and two special tokens."""
  letters = sorted(pre_tokenizers.ByteLevel.alphabet())
  words = ['<|im_start|>', '<|im_end|>', *letters]
  vocab = {word: place for place, word in enumerate(words)}
  backend = Tokenizer(models.BPE(vocab, []))
  backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  backend.decoder = decoders.ByteLevel()
  backend.add_special_tokens(words[:2])
  return HFTokenizer(backend, eos_ids=(1,), pad_id=0, chat_template=template)


class Talk(Environment):
  """Says the next of SAYS."""

  def reset(self, seed):
    """A question."""
    self.turns = 0
    return Reply('what?')

  def step(self, action):
    """Ends after three."""
    self.turns += 1
    return Reply(SAYS[self.turns - 1], {'outcome': 1.0}, done=self.turns == 3)


@dataclasses.dataclass(frozen=True)
class Chat(EnvironmentTask):
  """Observations are messages of the role `tool`."""

  instructions = 'Be brief.'
  traits = TaskTraits(chat=True, role='tool')

  def make(self, example):
    """Talk."""
    return Talk()


@dataclasses.dataclass(frozen=True)
class Thoughtless(Chat):
  """With a variable of the template."""

  traits = TaskTraits(chat=True, role='tool', arguments={'think': False})


class Script:
  """An engine whose policy says what a script says; row 1 is cut each turn.

  says: texts of all turns, of both rows. end: ids after those of row 0.
  """

  def __init__(self, tokenizer, says, end=(1,)):
    turns = [map(tokenizer.encode, texts) for texts in says]
    turns = [[[*whole, *end], cut] for whole, cut in turns]
    self.turns = list(map(iter, zip(*turns, strict=True)))
    self.ids, self.kinds = [[], []], [[], []]
    self.mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
    self.slots = SimpleNamespace(settle=lambda *_: None)

  def finish(self, traj, table, finished_B, turn_BT, turns, context_BT=None):
    """The rewards of all turns, and what tokens saw."""
    self.reward_BK, self.context_BT = turns.reward_BK, context_BT


class ScriptedSlots:
  """The slots of a Script, in which a burst has a whole turn."""

  widest, fed, idle, table = 2, 2, True, None
  house = staticmethod(list)  # all rows have a place

  def __init__(self, script):
    self._script = script
    self.places = Places(1, 2, 2, T, HostCache())
    self.first = self.sample([0, 1])

  def feed(self, said):
    """The observations of environments."""
    for row, (ids, _) in said.items():
      self._write(row, ids, ENVIRONMENT)

  def sample(self, rows, steps=0):
    """The next turns of these rows."""
    found = {}
    for row in rows:
      ids = next(self._script.turns[row])
      self._write(row, ids, POLICY)
      found[row] = Result(ids, row == 0, True)
    return SimpleNamespace(rows=rows, ended=True, read=lambda: found)

  def _write(self, row, ids, kind):
    self._script.ids[row] += ids
    self._script.kinds[row] += [kind] * len(ids)


@pytest.fixture(name='play')
def _play(make_episodes, monkeypatch):
  """Plays all turns; returns (ids of the prompt, the engine)."""

  def play(task, tokenizer, says=(('ok', 'longer'),) * 3, end=(1,)):
    episodes = make_episodes(task, tokenizer, TURNS)
    engine = Script(tokenizer, says, end)

    monkeypatch.setattr(
      slot_runner, 'RunningSlots', lambda *_: ScriptedSlots(engine)
    )
    prompts = EpisodePrompts(
      task, 'train', tokenizer, 1000, begin=episodes.open
    )
    examples, prompt, mask, _ = prompts.batch([0])
    traj = SimpleNamespace(group_size=2, response_BT=np.zeros((2, T)))
    episodes.play(engine, {}, traj, None, examples)
    return prompt[mask > 0].tolist(), engine

  return play


def conversation(action):
  """All that was said before the last action, and the action."""
  messages = [
    {'role': 'system', 'content': 'Be brief.'},
    {'role': 'user', 'content': 'what?'},
  ]
  for says in SAYS[:2]:
    messages += [
      {'role': 'assistant', 'content': action},
      {'role': 'tool', 'content': says},
    ]
  return messages


def test_ids_are_those_of_the_conversation(play):
  """The prefix property, with turns that end and turns that are cut.

  Ids before the last action are those of the template's text of all messages,
  with special tokens in the template only: SAYS spells one.
  """
  tokenizer = byte_tokenizer()
  prompt, engine = play(Chat(), tokenizer)
  for row, action in enumerate(('ok', 'longer')):
    ids = prompt + engine.ids[row]
    last = [*tokenizer.encode(action), *([1] if row == 0 else [])]
    assert ids[-len(last) :] == last
    before = tokenizer.encode_chat(conversation(action))
    assert ids[: -len(last)] == before
    kinds = np.array([ENVIRONMENT] * len(prompt) + engine.kinds[row])
    # The end of a whole turn is the policy's, that of a cut one is not.
    assert (kinds[np.array(ids) == 1] == POLICY).sum() == 3 * (row == 0)


def test_turns_that_a_stop_text_ends_are_closed(play):
  """They have ended without the end token, which the template has."""
  tokenizer = byte_tokenizer()
  prompt, engine = play(Chat(), tokenizer, end=())
  for row, action in enumerate(('ok', 'longer')):
    before = tokenizer.encode_chat(conversation(action))
    assert prompt + engine.ids[row] == before + tokenizer.encode(action)


def test_a_context_without_thoughts_is_a_conversation(play):
  """Its ids are those of the template's text without them."""
  tokenizer = byte_tokenizer()
  task = MemoryWindow(Chat(), turns=None, thoughts_end='/')
  says = (('hm/ok', 'hm/longer'),) * 3
  prompt, engine = play(task, tokenizer, says)
  for row, action in enumerate(('ok', 'longer')):
    start = int(engine.context_BT[row, len(engine.ids[row]) - 1])
    assert engine.kinds[row][start] == ENVIRONMENT
    ids = prompt + engine.ids[row][start:]
    last = [*tokenizer.encode(f'hm/{action}'), *([1] if row == 0 else [])]
    assert ids[-len(last) :] == last
    assert ids[: -len(last)] == tokenizer.encode_chat(conversation(action))


def test_variables_of_the_template_open_every_turn(play):
  tokenizer, task = byte_tokenizer(), Thoughtless()
  prompt, _ = play(task, tokenizer)
  opening = '<|im_start|>assistant\nno thoughts\n'
  assert tokenizer.backend.decode(prompt, skip_special_tokens=False).endswith(
    opening
  )
  after = tokenizer.encode('<|im_end|>\n' + opening, control=True)
  for one in (task, mixed(task), judged(task, (OWN,))):
    assert turn_format(one, tokenizer, TURNS).after == tuple(after)


def test_several_episodes_have_the_variables_of_one():
  """Any tools; other variables would change what opens their turns."""
  with pytest.raises(ValueError, match='variables of the chat template but'):
    mixed(Thoughtless(), Chat())
  with pytest.raises(ValueError, match=r'evaluation.sets: all episodes must'):
    judged(Thoughtless(), (EvaluationSet('own', task=Chat()),))
  window = MemoryWindow(Chat(), turns=1)
  assert judged(window, (EvaluationSet('own', task=Chat()),)).traits.rewrites


def test_a_template_that_changes_what_is_said_is_an_error():
  template = CHATML.replace("m['content']", "m['content'] | upper")
  with pytest.raises(ValueError, match="Chat: the chat template .* 'tool'"):
    turn_format(Chat(), byte_tokenizer(template), TURNS)


TOOLS = '{% if tools %}{{ tools | tojson }}\nas <tool_call>\n{% endif %}'


def test_tools_are_shown_by_the_template(tmp_path, make_episodes):
  """Schemas in the prompt; results are messages of the role `tool`."""
  own = question(tmp_path, ChatTemplate(user='{question}'))
  task, tokenizer = WithTools(task=own), byte_tokenizer(TOOLS + CHATML)
  episodes = make_episodes(task, tokenizer, TURNS)
  prompts = EpisodePrompts(task, 'train', tokenizer, 400, begin=episodes.open)
  _, prompt, mask, _ = prompts.batch([0])
  text = tokenizer.backend.decode(
    prompt[mask > 0].tolist(), skip_special_tokens=False
  )
  tools = json.loads(text.split('\n')[0])
  assert tools == task.traits.arguments['tools']
  assert text.endswith('6 times 7?<|im_end|>\n<|im_start|>assistant\n')
  ids, _ = turn_format(task, tokenizer, TURNS).observation('42', cut=False)
  assert tokenizer.backend.decode(ids, skip_special_tokens=False) == (
    '\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n'
  )


def test_a_template_that_reads_no_tools_is_an_error(tmp_path):
  """It says what serves instead."""
  task = WithTools(task=question(tmp_path, ChatTemplate(user='{question}')))
  with pytest.raises(ValueError, match="reads no tools; task.shown='text'"):
    turn_format(task, byte_tokenizer(), TURNS)
  text = dataclasses.replace(task, shown='text')
  turn_format(text, byte_tokenizer(), TURNS)


def test_a_template_with_calls_of_another_form_is_an_error(tmp_path):
  """Its model would call in vain: a turn without a call is the answer."""
  task = WithTools(task=question(tmp_path, ChatTemplate(user='{question}')))
  other = byte_tokenizer(TOOLS.replace('<tool_call>', '[TOOL_CALLS]') + CHATML)
  with pytest.raises(ValueError, match="after '<tool_call>', the only ones"):
    turn_format(task, other, TURNS)
  turn_format(dataclasses.replace(task, shown='text'), other, TURNS)


def gguf_tokenizer():
  """The tokenizer of a GGUF file of SmolLM2, all bytes and two merges."""
  letters = sorted(pre_tokenizers.ByteLevel.alphabet())
  merges = ['t o', 'to o']
  words = ['<|im_start|>', '<|im_end|>', *letters, 'to', 'too']
  types = [3, 3] + [1] * (len(words) - 2)
  backend = gguf_import.byte_level_bpe('smollm', words, merges, types)
  return HFTokenizer(backend, eos_ids=(1,), pad_id=0, chat_template=SMOLLM)


def question(tmp_path, template):
  """6 times 7."""
  path = tmp_path / 'rows.jsonl'
  path.write_text('{"question": "6 times 7?", "answer": 42}')
  return QuestionAnswer(sources={'train': str(path)}, template=template)


def test_calls_of_a_chat_model_are_turns_of_its_template(play, tmp_path):
  """A GGUF file's tokenizer, a call in JSON, its result, the answer."""
  own = question(tmp_path, ChatTemplate(user='{question}'))
  task, tokenizer = WithTools(task=own, shown='text'), gguf_tokenizer()
  call = {'name': 'calculator', 'arguments': {'expression': '6 * 7'}}
  call = f'<tool_call>{json.dumps(call)}'
  prompt, engine = play(task, tokenizer, [(call, call), ('it is 42', '42')])
  said = ('assistant', call), ('user', '<tool_response>\n42\n</tool_response>')
  messages = [
    *task.example('train', 0).messages,
    *({'role': role, 'content': text} for role, text in said),
  ]
  before = tokenizer.encode_chat(messages)
  assert prompt + engine.ids[0] == [*before, *tokenizer.encode('it is 42'), 1]
  assert prompt + engine.ids[1] == [*before, *tokenizer.encode('42')]
  np.testing.assert_array_equal(engine.reward_BK, [[0, 1, 0], [0, 1, 0]])


def test_marked_calls_continue_a_plain_text(play, tmp_path):
  """The text of prompt, call, result and answer; a call that fails."""
  own, tokenizer = (
    question(tmp_path, PlainTemplate('{question}\n')),
    gguf_tokenizer(),
  )
  task = WithTools(task=own, form=MarkedCalls(), shown='none')
  turns = [('Call: 6 * 7\n', 'Call: 7 / 0'), ('Answer: 42', '8')]
  prompt, engine = play(task, tokenizer, turns)
  whole, failed = (tokenizer.decode(prompt + ids) for ids in engine.ids)
  called = '6 times 7?\nCall: 6 * 7\nResult: 42\nAnswer: 42'
  assert whole == called
  assert failed.endswith(
    'Call: 7 / 0Result: error: calculator: ExpressionErro8'
  )
  kinds = np.array(engine.kinds[0])
  read = tokenizer.decode(np.array(engine.ids[0])[kinds == ENVIRONMENT])
  assert read == 'Result: 42\n'
  np.testing.assert_array_equal(engine.reward_BK, [[0, 1, 0], [0, 0, 0]])
