"""Solved examples: which are kept, which are taken, where they are."""

import types

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.decoding.stop import make_stop
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.solved import SolvedExamples
from rl_jax.rollouts.wrappers.solved_seeds import SolvedSeeds
from rl_jax.runs.policy import task_tokenizer
from rl_jax.runs.sources import RememberingSelector
from rl_jax.worlds import Arithmetic, Bandit, Chain

CHAIN = Chain(min_operations=2, max_operations=3, num_train=30)


def store(task=CHAIN, places=100, max_prompt_tokens=100):
  """(an empty store, its prompts)."""
  tokenizer = task_tokenizer(task)
  prompts = PromptSet(task, 'train', tokenizer, max_prompt_tokens)
  return SolvedExamples(prompts, make_stop(tokenizer), places, 8), prompts


def ids_of(prompts, text):
  return [*prompts.tokenizer.encode(text), prompts.tokenizer.eos_ids[0]]


def test_the_most_alike_of_others_come_last():
  """By the cosine of counts of characters, computed here."""
  solved, prompts = store()
  for index in range(1, 30):
    solved.add(index, ids_of(prompts, str(index % 10)))
  texts = [prompts.example(i).prompt for i in range(30)]
  counts = np.array([[t.count(c) for c in CHAIN.alphabet] for t in texts])
  counts = counts / np.linalg.norm(counts, axis=1, keepdims=True)
  best = 1 + np.argsort(-counts[1:] @ counts[0], kind='stable')[:2]
  found = solved.nearest(0, 2)
  assert [(e.prompt, t) for e, t in found] == [
    (texts[i], str(i % 10)) for i in best[::-1]
  ]
  own = solved.nearest(5, 29)
  assert len(own) == 28 and texts[5] not in [e.prompt for e, _ in own]


def test_a_later_response_takes_the_place():
  """A response of the same prompt, or of one that is `places` away, replaces
  it.
  """
  solved, prompts = store(places=3)
  solved.add(4, ids_of(prompts, '12345'))
  solved.add(4, ids_of(prompts, '6'))
  assert [t for _, t in solved.nearest(0, 2)] == ['6']
  solved.add(7, ids_of(prompts, '8'))
  ((example, text),) = solved.nearest(0, 2)
  assert (example.id, text) == (7, '8')


def test_a_checkpoint_brings_it_back():
  """E0: with the state of the selector; later changes do not reach it."""
  solved, prompts = store()
  solved.add(4, ids_of(prompts, '1'))
  solved.add(9, ids_of(prompts, '2'))
  inner = types.SimpleNamespace(state={'drawn': 3})
  saved = RememberingSelector(inner, solved).state
  solved.add(9, ids_of(prompts, '3'))
  fresh, _ = store()
  again = RememberingSelector(types.SimpleNamespace(state=None), fresh)
  again.state = saved
  assert again.prompts.state == {'drawn': 3}

  def texts(x):
    return [(e.id, t) for e, t in x.nearest(0, 2)]

  assert sorted(texts(fresh)) == [(4, '1'), (9, '2')]
  fresh.add(9, ids_of(prompts, '3'))
  assert texts(fresh) == texts(solved)


def round_of(prompts, reward, texts):
  """Two samples of prompts 3, 4, 5."""
  rows = [ids_of(prompts, text) for text in texts]
  response = np.zeros((len(rows), 8), np.int32)
  for row, ids in zip(response, rows, strict=True):
    row[: len(ids)] = ids
  indices = np.array([3, 4, 5])
  return types.SimpleNamespace(
    indices=indices,
    examples=[prompts.example(i) for i in indices],
    reward_NG=np.asarray(reward, float),
    responses={'response': response, 'length': list(map(len, rows))},
  )


def test_failed_prompts_stand_behind_solved_ones():
  """The second sample of prompt 3 and the first of 5; prompt 4 has failed, one
  of its rewards is unknown."""
  solved, prompts = store()
  sampler = types.SimpleNamespace(memory=solved, task=CHAIN, fits=prompts.fits)
  reward = [[0, 1], [0, np.nan], [1, 1]]
  done = round_of(prompts, reward, ['1', '22', '3', '4', '55', '6'])
  piece = SolvedSeeds(count=2)
  assert piece.examples(done, sampler) == {}  # nothing is known yet
  piece.remember(done, sampler)
  ((place, example),) = piece.examples(done, sampler).items()
  three, four, five = (prompts.example(i).prompt for i in (3, 4, 5))
  both = (f'{three}22;{five}55;{four}', f'{five}55;{three}22;{four}')
  assert place == 1 and example.prompt in both
  assert CHAIN.reward(example, example.answer)['outcome'] == 1.0
  # The farther one is left out where both are too long.
  sampler.fits = lambda e: len(e.prompt) < len(both[0])
  (short,) = piece.examples(done, sampler).values()
  assert example.prompt.endswith(short.prompt) and ';' in short.prompt
  sampler.fits = lambda e: False
  assert piece.examples(done, sampler) == {}


def test_what_does_not_fit_is_refused():
  """Naming the field and how to do without."""
  rollout = types.SimpleNamespace(turns=None)
  with pytest.raises(ValueError, match='Arithmetic has no method `with_exam'):
    SolvedSeeds().check(CheckContext(task=Arithmetic(), rollout=rollout))
  with pytest.raises(ValueError, match='rollout.turns'):
    turns = types.SimpleNamespace(turns=object())
    SolvedSeeds().check(CheckContext(task=CHAIN, rollout=turns))
  SolvedSeeds().check(CheckContext(task=CHAIN, rollout=rollout))
  _, prompts = store(Bandit(), max_prompt_tokens=2)
  with pytest.raises(ValueError, match='max_prompt_tokens = 2'):
    SolvedSeeds().check(CheckContext(prompts=prompts))
  _, prompts = store(Bandit(), max_prompt_tokens=3)
  SolvedSeeds().check(CheckContext(prompts=prompts))


def test_it_can_be_left_out():
  _, prompts = store()
  with_store = configuration.build('chain', 'xrpo')
  memory = with_store.method.rollout.make_memory(prompts, with_store.rollout)
  assert memory.state['index_M'].shape == (1000,)
  sets = ['method.rollout.seeds=null']
  config = configuration.build('chain', 'xrpo', sets)
  assert config.method.rollout.make_memory(prompts, config.rollout) is None
