"""Flags of an evaluation change what they name; the rest is that of the run."""

import dataclasses
import json

from absl import flags
import pytest

from configs.worlds import bandit
from experiments.flags import evaluation
from rl_jax import api
from rl_jax.config import EvaluationConfig, evaluated_tokens
from rl_jax.models import ModelConfig
from rl_jax.pieces.logits import TopK
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import (
  ChatTemplate,
  PlainTemplate,
  QuestionAnswer,
  RewardFunctions,
)
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Bandit


def config_of(run, *arguments):
  """The configuration of a command line."""
  values = flags.FlagValues()
  evaluation.define_flags(values)
  values(['evaluate', *arguments])
  return evaluation.from_flags(run, values)


@pytest.fixture
def run(toy):
  """A run on word problems with its own settings."""
  return dataclasses.replace(
    bandit.get_config(toy.get_method('nlpo')),
    task=QuestionAnswer(
      sources={'train': 'train.jsonl'},
      question='{Body}',
      extract='boxed',
      hold_out='last',
      num_validation=3,
      template=ChatTemplate(system='Be brief.', prefill='So '),
    ),
    rollout=RolloutConfig(
      max_response_tokens=9, temperature=0.7, stop=('\n\n',), slots=4
    ),
    evaluation=EvaluationConfig(
      every=5, num_samples=3, top_p=0.9, transforms=(TopK(k=3),), beams=2
    ),
    verifier=VerifierConfig(num_workers=0, timeout_seconds=3.0),
    mesh=MeshConfig(data=1, fsdp=16),
  )


def test_a_run_is_evaluated_as_it_is(run):
  """Task, limits, stop texts, sampling; on all devices, with a time limit."""
  found = config_of(run)
  assert found.task == run.task and found.rollout == run.rollout
  assert found.method == run.method and found.mesh == MeshConfig()
  assert found.evaluation == EvaluationConfig(
    split='test',
    num_prompts=1000,
    batch_prompts=64,
    top_p=0.9,
    transforms=(TopK(k=3),),
    beams=2,
  )
  assert found.verifier == VerifierConfig(timeout_seconds=3.0)


def test_flags_replace_single_settings(run):
  found = config_of(
    run,
    '--temperature=0.2',
    '--top_k=5',
    '--max_new_tokens=20',
    '--stop=',
    '--num_samples=8',
    '--split=validation',
    '--num_workers=2',
    '--bad_rows=skip',
    '--prefill=Well, ',
    '--extract=hash',
    '--set=mesh.fsdp=2',
    '--set=rollout.slots=null',
  )
  own = found.evaluation
  assert (own.temperature, own.top_k, own.top_p) == (0.2, 5, 0.9)
  assert evaluated_tokens(found) == 20 and found.rollout.stop == ()
  assert own.num_samples == 8 and own.split == 'validation'
  assert found.rollout.slots is None and found.mesh.fsdp == 2
  assert found.verifier.workers == 2
  template = dataclasses.replace(run.task.template, prefill='Well, ')
  assert found.task == dataclasses.replace(
    run.task, bad_rows='skip', template=template, extract='hash'
  )
  assert config_of(run, r'--stop=\n', '--stop=é').rollout.stop == ('\n', 'é')


def test_other_data_have_the_forms_of_the_run(run, tmp_path):
  """Questions, templates and answers; no rows are held out of them."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'Body': 'one?', 'answer': '1'}) + '\n')
  task = config_of(run, f'--data={path}').task
  assert task.num_prompts('test') == 1 and task.extract == 'boxed'
  example = task.example('test', 0)
  assert example.prefill == 'So ' and example.messages[0]['role'] == 'system'
  found = config_of(None, f'--data={path}', '--question={Body}')
  assert found.task == QuestionAnswer(
    sources={'test': str(path)},
    question='{Body}',
    template=PlainTemplate(text='{question}'),
  )
  assert evaluated_tokens(found) == evaluation.NEW_TOKENS
  found = config_of(None, f'--data={path}', '--chat', '--template=Q {question}')
  assert found.task.template == ChatTemplate(user='Q {question}')


def judged(example, response):
  """A reward function of the run."""
  return float(len(response))


def test_a_run_with_functions_keeps_them(run, tmp_path):
  """Its data have other rows, and flags change the task within."""
  task = RewardFunctions(run.task, {judged: 1.0})
  run = dataclasses.replace(run, task=task)
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'Body': 'one?', 'answer': '1'}) + '\n')
  found = config_of(run, f'--data={path}', '--extract=hash').task
  assert found.functions == task.functions and found.task.extract == 'hash'
  assert found.task.sources == {'test': str(path)}
  assert found.example('test', 0).prefill == 'So '
  assert config_of(run, '--extract=hash').task.task.extract == 'hash'
  with pytest.raises(ValueError, match='--gold: Bandit has no such field'):
    bandit_task = dataclasses.replace(task, task=Bandit())
    config_of(dataclasses.replace(run, task=bandit_task), '--gold=hash')


def test_a_named_configuration_gives_its_task(run):
  """Its limits too, but where a run has its own."""
  found = config_of(None, '--data=bandit')
  assert isinstance(found.task, Bandit)
  assert evaluated_tokens(found) == 2 and found.rollout.stop == ()
  found = config_of(run, '--data=bandit')
  assert isinstance(found.task, Bandit)
  assert evaluated_tokens(found) == 9 and found.rollout.temperature == 0.7
  assert found.verifier == VerifierConfig()


def test_mistakes_are_named(run):
  with pytest.raises(ValueError, match='--data is missing'):
    config_of(None)
  with pytest.raises(ValueError, match='--bad_rows: Bandit has no such field'):
    config_of(run, '--data=bandit', '--bad_rows=skip')
  with pytest.raises(ValueError, match='--chat: Bandit has no such field'):
    config_of(run, '--data=bandit', '--chat')
  with pytest.raises(ValueError, match='--prefill needs --chat'):
    config_of(None, '--data=rows.jsonl', '--prefill=So')
  with pytest.raises(ValueError, match="'evaluaton'.*mean 'evaluation'"):
    config_of(run, '--set=evaluaton.top_p=0.5')


def test_a_checkpoint_without_a_task_is_named(tmp_path):
  def error_of(path):
    values = flags.FlagValues()
    evaluation.define_flags(values)
    flags.DEFINE_string('checkpoint', None, 'Policy.', flag_values=values)
    values(['evaluate', f'--checkpoint={path}'])
    with pytest.raises(ValueError) as error:
      evaluation.from_flags(None, values)
    return str(error.value)

  missing = tmp_path / 'bandti'
  assert error_of(missing) == f'--checkpoint={missing} does not exist'
  found = error_of(tmp_path)
  assert f'--checkpoint={tmp_path} is not a work directory' in found
  assert 'no checkpoint yet' in found
  assert 'not a work directory' in error_of('gs://bucket/model')


def test_the_splits_that_have_prompts_are_named(run, tmp_path):
  """By default `test` is evaluated, which data of a user may lack."""
  path = tmp_path / 'rows.jsonl'
  path.write_text('{"question": "q", "answer": 1}\n' * 5)
  task = QuestionAnswer(
    sources={'train': str(path)}, hold_out='last', num_validation=2
  )
  own = dataclasses.replace(run, task=task)
  api.check_split(config_of(own, '--split=validation'))
  with pytest.raises(
    ValueError,
    match="evaluation.split = 'test': QuestionAnswer has no pr"
    '.* but train: 3, validation: 2, test: 0',
  ):
    api.check_split(config_of(own))
  with pytest.raises(ValueError, match="split 'tset' is none of train"):
    api.check_split(config_of(own, '--split=tset'))


def test_a_list_in_a_json_file_is_data(tmp_path):
  path = tmp_path / 'array.json'
  path.write_text('[{"question": "q", "answer": 1}]')
  assert config_of(None, f'--data={path}').task.num_prompts('test') == 1


@pytest.mark.parametrize('name', ['rows.xlsx', 'rows.txt'])
def test_data_of_another_form_say_what_is_read(tmp_path, name):
  path = tmp_path / name
  path.write_text('[{"question": "q", "answer": 1}]')
  with pytest.raises(ValueError, match=r'rows are read from \.jsonl') as error:
    config_of(None, f'--data={path}')
  assert str(path) in str(error.value) and 'Known' not in str(error.value)


def test_prompts_fit_the_model(run):
  """A prompt has as many tokens as responses leave; at least one."""
  model = ModelConfig(
    vocab_size=5,
    num_layers=1,
    width=4,
    num_heads=1,
    num_kv_heads=1,
    head_size=4,
    mlp_size=4,
    max_positions=20,
  )
  assert api.within(run, model).rollout.max_prompt_tokens == 11
  long = config_of(run, '--max_new_tokens=20')
  with pytest.raises(ValueError, match='= 20: the model has 20 pos'):
    api.within(long, model)


def test_data_with_options(tmp_path):
  """A list in one field, or a field for each; the field of the right one."""
  path = tmp_path / 'rows.jsonl'
  row = {'q': 'Sky?', 'options': ['red', 'blue'], 'right': 'B'}
  path.write_text(json.dumps(row) + '\n')
  config = config_of(
    None,
    f'--data={path}',
    '--options=options',
    '--answer={right}',
    '--question={q}',
    '--template=Q: {question}',
  )
  assert config.evaluation.options and config.evaluation.split == 'test'
  example = config.task.example('test', 0)
  assert example.prompt == 'Q: Sky?'
  right = [x.text for x in config.task.scored_options(example) if x.right]
  assert right == ['blue']
  config = config_of(None, f'--data={path}', '--options=q,right', '--answer=')
  assert config.task.options == ('q', 'right') and config.task.gold == ''


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['--options=a'], 'give --data=FILE'),
    (['--data=bandit', '--options=a'], 'set=evaluation.options=True'),
    (['--data=x.jsonl', '--options=a', '--gold=hash'], '--gold is not of'),
    (['--data=x.jsonl', '--options=a', '--answer=x {b}'], 'it is one field'),
  ],
)
def test_options_that_cannot_be(arguments, message):
  with pytest.raises(ValueError, match=message):
    config_of(None, *arguments)
