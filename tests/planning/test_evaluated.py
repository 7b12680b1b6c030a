"""Plans hold the programs of evaluations."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import EvaluationConfig
from rl_jax.measures.option_scores import OptionScores, OptionSet
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces.logits import TopP
from rl_jax.planning import abstract_run, memory_plan, programs, roofline
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runs import evaluation as evaluation_lib
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.tasks import ChoiceRows, PlainTemplate
from rl_jax.tasks.evaluation_set import EvaluationSet

SETTINGS = EvaluationConfig(
  every=10, num_prompts=20, batch_prompts=8, num_samples=4
)
# Of the split and of 'warm' there are greedy responses and samples.
SETS = (
  EvaluationSet(name='same', limit=8, num_samples=0),
  EvaluationSet(name='warm', limit=6, temperature=2.0, num_samples=4),
)


def config_with(toy, settings, method='grpo', **fields):
  """Rollouts of 8 prompts with 4 samples of 3 tokens."""
  config = bandit.get_config(toy.get_method(method))
  rollout = RolloutConfig(
    num_prompts=8, group_size=4, max_prompt_tokens=4, max_response_tokens=3
  )
  return dataclasses.replace(
    config, rollout=rollout, evaluation=settings, **fields
  )


def lowered(config):
  """The programs of one CPU device, by stage."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  model = policy_lib.planned_model(config.model, config.task, Platform())
  return abstract_run.AbstractRun(config, model, mesh).lower()


def test_programs_are_of_a_kind_and_called_for_all_prompts(toy):
  """20, 8 and 6 prompts in batches of 8: greedy 3 + 1 + 1 times."""
  settings = dataclasses.replace(SETTINGS, sets=SETS)
  found = abstract_run.evaluated(config_with(toy, settings))
  times = {stage: times for stage, (_, times) in found.items()}
  assert times == {
    'evaluate': 5,
    'evaluate samples': 3,
    'evaluate warm samples': 1,
  }
  rows = [(x.group_size, x.prompts) for x, _ in found.values()]
  assert rows == [(1, 8), (4, 8), (4, 6)]


def test_no_evaluation_has_no_program(toy):
  for change in ({'every': 0}, {'sample': False}):
    settings = dataclasses.replace(SETTINGS, **change)
    assert abstract_run.evaluated(config_with(toy, settings)) == {}


@pytest.mark.parametrize('method', ['grpo', 'dapo'])
def test_equal_shapes_share_the_program_of_training(toy, method):
  """With and without a reference, which sampling does not read."""
  found = lowered(config_with(toy, SETTINGS, method))
  texts = {stage: program.as_text() for stage, program in found.items()}
  assert texts['evaluate samples'] == texts['generate'] != texts['evaluate']
  kept = {x: found[x] for x in ('generate', 'evaluate samples')}
  compiled = programs.all_compiled(
    kept, devices=1, unknown_trips=dict.fromkeys(kept, 1)
  )
  assert compiled['evaluate samples'].shared == 'generate'
  assert compiled['generate'].shared == ''


def test_other_draws_have_their_program(toy):
  """A transform, another temperature or more samples."""
  for change in (
    {'transforms': (TopP(p=0.5),)},
    {'temperature': 0.5},
    {'num_samples': 8},
  ):
    settings = dataclasses.replace(SETTINGS, **change)
    found = lowered(config_with(toy, settings))
    assert found['evaluate samples'].as_text() != found['generate'].as_text()


def test_the_roofline_has_the_share_of_an_iteration(toy):
  """Three calls of the size of a rollout at every tenth iteration."""
  config = config_with(toy, dataclasses.replace(SETTINGS, greedy=False))
  model = policy_lib.planned_model(config.model, config.task, Platform())
  plan = memory_plan.estimate(
    config, model, mesh_lib.abstract_mesh(config.mesh)
  )
  sent = {'generate': 0.0, 'evaluate samples': 1e9}
  rollout, evaluation = roofline.roofline(config, model, plan, 1, sent)
  assert evaluation.stage == 'evaluate'
  assert evaluation.flop == pytest.approx(0.3 * rollout.flop)
  assert evaluation.sent == pytest.approx(0.3e9)


def test_stop_texts_need_no_tokenizer(toy):
  """They end responses; the programs and their calls are described as ever."""
  config = config_with(toy, SETTINGS)
  rollout = dataclasses.replace(config.rollout, stop=('Problem:',))
  stopped = dataclasses.replace(config, rollout=rollout)
  found, plain = (
    {
      stage: (call._replace(sampling=None), times)
      for stage, (call, times) in abstract_run.evaluated(one).items()
    }
    for one in (stopped, config)
  )
  assert found == plain


def test_stop_texts_may_be_planned(toy):
  """The texts are bytes where there is no tokenizer."""
  config = config_with(toy, SETTINGS)
  rollout = dataclasses.replace(
    config.rollout, stop=('</answer>',), show_stop=True
  )
  found = abstract_run.evaluated(dataclasses.replace(config, rollout=rollout))
  assert {*found} == {'evaluate', 'evaluate samples'}


def choices(tmp_path, count):
  """Questions of 4 tokens, with four options of 3 tokens."""
  path = tmp_path / 'rows.jsonl'
  row = {'question': 'abcd', 'choices': ['aa', 'bb', 'ca', 'da'], 'answer': 0}
  path.write_text(count * (json.dumps(row) + '\n'))
  return ChoiceRows(
    sources={'test': str(path)}, template=PlainTemplate('{question}')
  )


def with_options(toy, task, **fields):
  """The configuration with a set of options beside greedy responses."""
  one = EvaluationSet(
    name='letters', split='test', task=task, options=True, **fields
  )
  settings = dataclasses.replace(SETTINGS, num_samples=0, sets=(one,))
  return config_with(toy, settings)


def test_options_have_the_program_of_the_run(toy, tmp_path):
  """Its text is that of a run whose options have full width."""
  config = with_options(toy, choices(tmp_path, 8))
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  model = policy_lib.planned_model(config.model, config.task, Platform())
  (task,) = [one.task for one in config.evaluation.sets]
  prompts = OptionSet(
    task, 'test', CharTokenizer('abcd '), 4, max_option_tokens=3
  )
  rows = evaluation_lib.option_rows(config)
  scores = OptionScores(prompts, model, mesh, 8, rows)
  calls = []

  def called(**arguments):
    calls.append(program.lower(**arguments).as_text())
    return np.zeros(32)

  program, scores._program = scores._program, called
  with jax.set_mesh(mesh):
    scores.run(params_lib.shapes(model, mesh), 8)
  assert [lowered(config)['evaluate letters options'].as_text()] == calls


def test_options_count_in_the_roofline(toy, tmp_path):
  """20 questions, 8 at a time; a forward pass of 4 options each."""
  config = with_options(toy, choices(tmp_path, 1))
  stages = abstract_run.evaluation_stages(config)
  assert stages == ('evaluate', 'evaluate letters options')
  ((call, times),) = abstract_run.scored(config).values()
  assert (call.prompts, call.tokens, times) == (8, 3, 3)
  model = policy_lib.planned_model(config.model, config.task, Platform())
  mesh = mesh_lib.abstract_mesh(config.mesh)
  plan = memory_plan.estimate(config, model, mesh)
  sent = {'generate': 0.0, 'evaluate letters options': 1e9}
  rollout, both = roofline.roofline(config, model, plan, 1, sent)
  alone = config_with(toy, dataclasses.replace(SETTINGS, num_samples=0))
  sent = {'generate': 0.0, 'evaluate': 0.0}
  _, greedy = roofline.roofline(alone, model, plan, 1, sent)
  # A rollout has as many rows of as many tokens.
  assert both.flop - greedy.flop == pytest.approx(0.3 * rollout.flop)
  assert both.sent == pytest.approx(0.3e9)


def test_sets_of_options_share_programs(toy, tmp_path):
  """Their limits are equal; few rows a microbatch make more programs."""
  config = with_options(toy, choices(tmp_path, 1), limit=6)
  (one,) = config.evaluation.sets
  sets = (one, dataclasses.replace(one, name='again'))
  settings = dataclasses.replace(config.evaluation, sets=sets)
  found = abstract_run.scored(dataclasses.replace(config, evaluation=settings))
  ((stage, (call, times)),) = found.items()
  assert (stage, call.prompts, times) == ('evaluate letters options', 6, 2)
  fewer = call._replace(rows=8)
  axes = {'data': 1, 'fsdp': 2}
  assert (call.microbatches(axes), fewer.microbatches(axes)) == (1, 3)
  none = dataclasses.replace(settings, every=0)
  assert not abstract_run.scored(dataclasses.replace(config, evaluation=none))
