"""Judges as models: what they read, and what rows they cannot judge."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.judging.judges import Asked, Judges, Reader
from rl_jax.judging.rubric import Reviser
from rl_jax.learning.final_values import final_values
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models import heads, transformer
from rl_jax.models.judge_source import Judge, Revision
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.runs.judges import label_ids
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import Example
from rl_jax.verification.pool import Outcome

QUESTIONS = [[3, 4, 5], [6], [3, 4, 5, 6, 7]]

pytestmark = pytest.mark.usefixtures('mesh')


@pytest.fixture(scope='module')
def model(tiny, mesh):
  """With a value head that is not 0."""
  params = jax.device_put(tiny.params(), mesh_lib.replicated(mesh))
  return dataclasses.replace(tiny.CFG, value_head=True), params


def rows_of(toy, questions):
  """The questions as responses to one prompt token each: their first."""
  size = max(map(len, questions)) - 1
  response, mask = np.zeros((2, len(questions), size))
  for row, ids in enumerate(questions):
    response[row, : len(ids) - 1] = ids[1:]
    mask[row, : len(ids) - 1] = 1.0
  return toy.trajectories(
    mask,
    group_size=1,
    response_BT=response.astype(np.int32),
    prompt_NP=np.array([[ids[0]] for ids in questions], np.int32),
    prompt_mask_NP=np.ones((len(questions), 1), np.float32),
  )


def test_values_are_those_of_a_reward_model(toy, model, mesh):
  """E1: after the last token, whatever is batched with a question."""
  cfg, params = model
  reader = Reader(cfg, mesh, pad_id=0, rows=2)
  found = reader(params, QUESTIONS)
  several = [QUESTIONS[0], QUESTIONS[2]]
  expected = final_values(Forward(model=cfg), params, rows_of(toy, several))
  np.testing.assert_allclose([found[0], found[2]], expected, atol=1e-5)
  assert np.ptp(found) > 0.01


def test_labels_are_read_as_the_next_token(toy, model, mesh):
  """E1: their log-probs as responses of one token, among themselves."""
  cfg, params = model
  reader = Reader(cfg, mesh, 0, 2, label_ids=(2, 9), values=(1.0, 3.0))
  found = reader(params, QUESTIONS)
  asked = [[*QUESTIONS[2], label] for label in (2, 9)]
  stats = token_statistics(
    Forward(model=cfg), params, rows_of(toy, asked), ('logp',)
  )
  first, second = np.exp(np.asarray(stats['logp'])[:, -1])
  expected = (first + 3 * second) / (first + second)
  np.testing.assert_allclose(found[2], expected, rtol=1e-4)
  assert 1.0 < expected < 3.0


@pytest.mark.slow
def test_texts_are_greedy_answers(model, mesh):
  """E2: every token has the largest logit after those before it."""
  cfg, params = model
  tokenizer = CharTokenizer('abcdefghi')
  stop = make_stop(tokenizer)
  engine = make_engine(
    cfg,
    SamplingConfig.ended_by(stop, greedy=True),
    EngineConfig(group_size=1, max_response_tokens=3),
    mesh,
  )
  key = jax.random.key(0)
  fixed = {'engine': engine, 'stop': stop, 'key': key}
  (found, *_) = Reader(cfg, mesh, 0, 2, **fixed)(params, QUESTIONS)
  ids = list(QUESTIONS[0])
  for _ in range(3):
    prompt = jnp.array([ids])
    hidden = transformer.forward(
      params,
      cfg,
      prompt,
      jnp.ones(prompt.shape),
      prompt[:, :1],
      jnp.ones((1, 1)),
    )
    logits = heads.logits(params, cfg, hidden[:, 0])
    ids.append(int(jnp.argmax(logits)))
    if ids[-1] in tokenizer.eos_ids:
      break
  assert found == tokenizer.decode(ids[len(QUESTIONS[0]) :])


def test_rows_without_an_outcome_stay_without(toy):
  """And a question that is too long costs its row, with the reason."""
  source = Judge(name='j', weight=2.0, template='{response}', max_tokens=3)
  seen = []

  def read(params, ids):
    seen.extend(ids)
    return [params + len(x) for x in ids]

  judges = Judges([Asked(source, None, lambda q: list(q.text), read)])
  judges.begin(10.0)
  outcomes = [Outcome({'outcome': 1.0})] * 3 + [Outcome(None, 'died')]
  found = judges.add(
    outcomes, [Example('', '', 0)] * 2, ['a', 'bb', 'cccc', 'd'], 2
  )
  assert [one.components for one in found] == [
    {'outcome': 1.0, 'j': 11.0},
    {'outcome': 1.0, 'j': 12.0},
    None,
    None,
  ]
  assert found[2].detail == "judge 'j': more than 3 tokens"
  assert found[3].kind == 'died'
  assert [''.join(x) for x in seen] == ['a', 'bb', 'ccc']
  assert judges.weights == {'j': 2.0}
  assert judges.metrics() == {
    'rollout/unread_judgements': 0.0,
    'rollout/rubric_version': 0.0,
  }


def test_an_evaluation_changes_no_rubric():
  """It reads the one of now, and nothing that it judges is remembered."""
  revision = Revision(every=1, refine='{response}', merge='{rubrics}')
  fields = {'template': '{rubric}:{response}', 'rubric': 'r'}
  source = Judge(name='j', revision=revision, **fields)
  seen = []

  def read(params, ids):
    seen.extend((params, ''.join(x)) for x in ids)
    return [0.5 for _ in ids]

  def answer(params, ids):
    return ['new' for _ in ids]

  reviser = Reviser(revision, None, list, answer)
  judges = Judges([Asked(source, None, lambda q: list(q.text), read, reviser)])
  of = Outcome({'outcome': 1.0}), Example('p', '', 0)
  judges.begin('old')
  judges.add([of[0]], [of[1]], ['a'], 1)
  judges.begin('older')
  state = judges.state
  found = judges.of_evaluation('late').add([of[0]], [of[1]], ['b'], 1)
  assert found[0].components == {'outcome': 1.0, 'j': 0.5}
  assert seen == [('old', 'r:a'), ('late', 'new:b')]
  assert judges.state == state


def test_labels_need_different_first_tokens():
  tokenizer = CharTokenizer('noyes'[:2] + 'yes')
  assert label_ids(Judge(labels=('no', 'yes')), tokenizer) == (2, 4)
  with pytest.raises(ValueError, match="'judge': labels .* must differ"):
    label_ids(Judge(labels=('no', 'on', 'one'), values=(0, 0, 1)), tokenizer)


def test_an_episode_is_told_by_its_turns(toy):
  """In the words of the judge; a response stays as it is."""
  source = Judge(template='{prompt}|{response}')
  turns = [('u', '01->'), ('t', '')]
  assert source.observed(turns) == (
    '[turn 1]\nu\n[answer]\n01->\n[turn 2]\nt\n[answer]\n\n'
  )
  assert source.observed('a {action} b') == 'a {action} b'
  assert source.observed([]) == ''
  plain = dataclasses.replace(source, turn='{action}{answer}', max_tokens=9)
  seen = []

  def read(params, ids):
    seen.extend(''.join(x) for x in ids)
    return [1.0] * len(ids)

  judges = Judges([Asked(plain, None, lambda q: list(q.text), read)])
  found = judges.add(
    [Outcome({'outcome': 0.0})] * 3,
    [Example('p', '', 0)],
    [turns, [('{answer}', 'x')], [('d', '01->02->')]],
    3,
  )
  assert seen == ['p|u01->t', 'p|{answer', 'p|d01->02']
  assert [one.components is None for one in found] == [False, True, True]


def test_a_turn_without_its_action_is_refused():
  with pytest.raises(ValueError, match="Judge.turn = '{answer}'"):
    Judge(turn='{answer}')
