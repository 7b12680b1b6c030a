"""Several tasks as one: ids, rewards, order of evaluation."""

import dataclasses
import importlib
import json

import jax
import pytest

from configs.worlds import bandit
from rl_jax import serialization
from rl_jax.config import EvaluationConfig
from rl_jax.data.recorded import RecordedSet
from rl_jax.data.recorded_checks import check_recorded
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.runs import loop
from rl_jax.runtime.mesh import MeshConfig, make_mesh
from rl_jax.tasks import (
  EvaluationSet,
  Mixture,
  MixturePart,
  PreferenceRows,
  PromptResponse,
  QuestionAnswer,
  TextWorld,
)
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Arithmetic, Bandit

METHOD = 'configs.methods.mopps'


@pytest.fixture
def task(tmp_path):
  path = tmp_path / 'rows.jsonl'
  rows = [{'question': f'q{i}', 'answer': i} for i in range(6)]
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  own = QuestionAnswer(
    sources={'train': str(path)},
    hold_out='last',
    num_validation=2,
    reward_weights={'outcome': 0.5, 'format': 0.25},
  )
  bandit = Bandit()
  return Mixture((MixturePart('own', own), MixturePart('bandit', bandit, 3.0)))


def test_ids_are_those_of_the_parts_in_turn(task):
  own, bandit = (part.task for part in task.parts)
  assert task.num_prompts('train') == 4 + bandit.num_prompts('train')
  for index in range(task.num_prompts('train')):
    example = task.example('train', index)
    part, i = (own, index) if index < 4 else (bandit, index - 4)
    inner = part.example('train', i)
    assert (example.id, example.prompt) == (index, inner.prompt)
    assert task.target(example) == part.target(inner)
  with pytest.raises(IndexError):
    task.example('train', task.num_prompts('train'))


def test_the_reward_is_the_parts_own(task):
  """0.5 x outcome + 0.25 x format of the rows, the outcome of the bandit."""
  row = task.example('train', 3)
  assert task.reward(row, '3') == {
    'outcome': 1.0,
    'format': 1.0,
    'weighted': 0.75,
  }
  assert task.reward(row, 'a')['weighted'] == 0.0
  bandit = task.parts[1].task
  inner = bandit.example('train', 1)
  arm = task.example('train', 5)
  right = bandit.target(inner)
  assert task.reward(arm, right) == {
    **bandit.reward(inner, right),
    'weighted': 1,
  }
  assert task.reward_weights == {'weighted': 1.0}


def test_validation_alternates_in_proportion(task):
  """Two rows and eight contexts: any two fifths hold a row at most."""
  bandit = task.parts[1].task
  count = task.num_prompts('validation')
  assert count == 2 + bandit.num_prompts('validation')
  parts = [
    task.example('validation', i).meta['mixture_part'] for i in range(count)
  ]
  assert parts.count('own') == 2
  places = [i for i, name in enumerate(parts) if name == 'own']
  assert places[0] < count / 2 < places[1]


def test_optional_members_are_those_of_all_parts(task):
  assert task.traits.reward_seconds == 0.0 and not task.traits.needs_workers
  assert task.alphabet is None  # rows have none
  pairs = MixturePart('pairs', PromptResponse(path='x'))  # without hints
  assert not Mixture((*task.parts, pairs)).supports('hinted')
  sums = Mixture((MixturePart('a', Arithmetic()), MixturePart('b', Bandit())))
  assert {*Arithmetic().alphabet, *Bandit().alphabet} == {*sums.alphabet}
  world = MixturePart('c', TextWorld())  # of words
  words = Mixture((*sums.parts, world)).alphabet
  assert len(words) == len({*words}) and {*sums.alphabet} < {*words}
  rows = Mixture(task.parts[:1])
  hinted = rows.hinted(rows.example('train', 2))
  assert hinted.id == 2 and 'Hint: 2' in hinted.prompt
  assert rows.reward(hinted, '2')['outcome'] == 1.0


def test_recorded_responses_are_those_of_the_parts(tmp_path, toy):
  """Conversations with all their turns; labels of every part are checked."""
  rows = {
    'pairs': {'prompt': 'p', 'chosen': 'a', 'rejected': 'b'},
    'scores': {'prompt': 'q', 'responses': ['c', 'd'], 'scores': [0, 1]},
    'turns': {
      'messages': [
        {'role': 'user', 'content': 'e'},
        {'role': 'assistant', 'content': 'f'},
        {'role': 'user', 'content': 'g'},
        {'role': 'assistant', 'content': 'h'},
      ]
    },
  }
  parts = {}
  for name, row in rows.items():
    (tmp_path / name).write_text(json.dumps(row))
    rows_of = PreferenceRows(path=str(tmp_path / name))
    parts[name] = MixturePart(name, rows_of)
  both = Mixture((parts['pairs'], parts['scores']))
  found = [both.recorded(both.example('train', index)) for index in range(2)]
  assert [[x.text for x in one] for one in found] == [['a', 'b'], ['c', 'd']]
  assert (both.num_recorded, Mixture((parts['turns'],)).num_recorded) == (2, 1)
  mixed = Mixture((parts['turns'], parts['pairs']))
  (whole,) = mixed.recorded(mixed.example('train', 0))
  assert [m['content'] for m in whole.messages] == ['f', 'g', 'h']
  check_recorded(mixed, 1, toy.get_method('sft'))
  with pytest.raises(ValueError, match="{'turns': 1, 'pairs': 2} responses"):
    check_recorded(mixed, 2, toy.get_method('dpo'))
  limits = {'max_response_tokens': 5}
  data = RecordedSet(both, 'train', ByteTokenizer(), 6, **limits)
  data.check_labels(toy.get_method('online_dpo'))
  with pytest.raises(ValueError, match='reads labels'):
    data.check_labels(toy.get_method('dpo'))
  sums = Mixture((MixturePart('a', Arithmetic()),))
  assert not sums.supports('logged') and sums.num_recorded == 1


def test_the_configuration_comes_back(task):
  assert serialization.from_json(serialization.to_json(task)) == task


CLUSTERED = QuestionAnswer(sources={'train': 'x'}, clusters=True)


@pytest.mark.parametrize(
  ('make', 'message'),
  [
    (lambda: Mixture(()), 'different names'),
    (lambda: Mixture((MixturePart('a', Bandit()),) * 2), 'different names'),
    (lambda: MixturePart('a/b', Bandit()), "MixturePart.name = 'a/b'"),
    (lambda: MixturePart('a', Bandit(), 0.0), 'MixturePart.weight = 0.0'),
    (
      lambda: Mixture(
        (MixturePart('a', Bandit()), MixturePart('b', CLUSTERED)),
      ),
      'clusters',
    ),
  ],
)
def test_bad_arguments_are_named(make, message):
  with pytest.raises(ValueError, match=message):
    make()


@pytest.mark.slow
def test_a_run_in_two_halves_equals_a_whole_one(tmp_path, rows_of):
  """Bit for bit, with the method's own selector in each part; shares hold."""
  parts = (MixturePart('small', Bandit(num_contexts=3)),)
  parts += (MixturePart('large', Bandit(num_contexts=8), 3.0),)
  config = bandit.get_config(importlib.import_module(METHOD).get_method())
  config = dataclasses.replace(
    config,
    task=Mixture(parts),
    verifier=VerifierConfig(num_workers=0),
    evaluation=EvaluationConfig(
      every=2,
      num_prompts=11,
      num_samples=2,
      sets=(
        EvaluationSet('rest'),
        EvaluationSet('other', task=Bandit(num_contexts=2)),
      ),
    ),
  )
  rows = []
  for name, ends in (('whole', [4]), ('halves', [2, 4])):
    for iterations in ends:
      changed = dataclasses.replace(config, iterations=iterations)
      with jax.set_mesh(make_mesh(MeshConfig(), jax.devices()[:1])):
        loop.Trainer(changed, str(tmp_path / name)).run()
    rows.append(rows_of(tmp_path / name))
  whole, halves = rows
  assert halves == whole
  for name in ('', 'rest/', 'rest/small/', 'other/', 'large/'):
    assert 0.0 <= whole[-1][f'evaluation/{name}pass_at_1'] <= 1.0
  assert whole[-1]['evaluation/other/n'] == 2
  for row in whole[1:]:
    assert row['rollout/prompts/large'] == 3 * row['rollout/prompts/small']
    both = row['rollout/reward/large'] * 6 + row['rollout/reward/small'] * 2
    assert both / 8 == pytest.approx(row['rollout/reward'])
