"""Sets of a run: their prompts, and who judges them."""

import json
import pickle

import pytest

from rl_jax import overrides, serialization
from rl_jax.config import EvaluationConfig
from rl_jax.tasks import EvaluationSet, QuestionAnswer, SetAverage
from rl_jax.tasks.evaluation_set import judged
from rl_jax.worlds import Bandit


def own_task(tmp_path):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'q', 'answer': 7}) + '\n')
  return QuestionAnswer(sources={'test': str(path)}, verifier='math')


def test_each_response_is_judged_by_its_own_task(tmp_path):
  own = EvaluationSet('own', task=own_task(tmp_path))
  several = judged(Bandit(), (own, EvaluationSet('rest')))
  example = own.example('validation', 0)
  assert own.num_prompts('train') == 1
  assert several.reward(example, '7')['outcome'] == 1.0
  assert several.reward(example, '8')['outcome'] == 0.0
  arm = Bandit().example('train', 0)
  right = Bandit().target(arm)
  assert several.reward(arm, right) == Bandit().reward(arm, right)
  assert several.traits.needs_workers and several.reward_weights == {
    'outcome': 1.0
  }
  weighted = Bandit(reward_weights={'outcome': 1.0, 'format': 0.5})
  several = judged(weighted, (own,))
  assert several.weights_of(arm) == weighted.reward_weights
  assert several.weights_of(example) == own.reward_weights == {'outcome': 1.0}
  assert pickle.loads(pickle.dumps(several)) == several


def test_without_tasks_of_their_own_nothing_changes():
  task = Bandit()
  assert judged(task, ()) is task
  assert judged(task, (EvaluationSet('rest', split='train'),)) is task


def test_sets_come_from_the_command_line():
  settings = EvaluationConfig(
    sets=(EvaluationSet('b', num_samples=4, greedy=False),),
    averages=(SetAverage('all', ('b/avg_at_4', 'pass_at_1')),),
  )
  text = serialization.to_json(settings)
  assert serialization.from_json(text) == settings
  text = 'EvaluationSet(name="b", task=Bandit(num_contexts=4))'
  config = overrides.add_piece(EvaluationConfig(), 'sets', text)
  assert config.sets == (EvaluationSet('b', task=Bandit(num_contexts=4)),)
  assert serialization.from_json(serialization.to_json(config)) == config
  assert serialization.digest(EvaluationConfig()) != serialization.digest(
    config
  )


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match="EvaluationSet.name = 'a/b'"):
    EvaluationSet('a/b')
  with pytest.raises(ValueError, match="split 'dev'"):
    EvaluationSet('a', split='dev')
  with pytest.raises(ValueError, match='EvaluationSet.temperature = 0.0'):
    EvaluationSet('a', temperature=0.0)
  with pytest.raises(ValueError, match="'average' is the name of averages"):
    EvaluationSet('average')
  with pytest.raises(ValueError, match='one metric at least'):
    SetAverage('a', ())
  for weights in ((1.0,), (1.0, 0.0)):
    with pytest.raises(ValueError, match='one number above 0 for each of'):
      SetAverage('a', ('b/pass_at_1', 'c/pass_at_1'), weights)


def test_averages_may_weigh_sets():
  """E1: 399 and 67 problems; without weights both count alike."""
  metrics = ('b/pass_at_1', 'c/pass_at_1')
  assert SetAverage('a', metrics).of([0.5, 1.0]) == 0.75
  weighed = SetAverage('a', metrics, (399.0, 67.0)).of([0.5, 1.0])
  assert weighed == pytest.approx((399 * 0.5 + 67) / 466)
