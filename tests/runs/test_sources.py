"""Runs on rows from data, on samples, and on both."""

import dataclasses
import types

import jax
import numpy as np
import pytest

from configs.worlds import chain, preferences
from experiments.flags import configuration
from rl_jax.config import validate
from rl_jax.data.recorded import RecordedSet, RecordedSource
from rl_jax.data.recorded_checks import check_recorded
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.pieces import row_inputs
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.collect import Judging
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import loop, sources
from rl_jax.runs.held_out import HeldOut
from rl_jax.runs.scanned import program
from rl_jax.runs.scanned import prompts as scanned_prompts
from rl_jax.tasks import EvaluationSet, RulePairs
from rl_jax.worlds import Arithmetic

pytestmark = pytest.mark.usefixtures('no_mesh_left')

SMALL = {
  'iterations': '4',
  'rollout.num_prompts': '8',
  'rollout.recorded_prompts': '8',
  'evaluation.every': '0',
  'verifier.num_workers': '0',
  'model.config.num_layers': '1',
  'model.config.width': '16',
  'model.config.mlp_size': '32',
}


def small(method, **changes):
  """configs/worlds/preferences.py with eight pairs; fields with __ for a
  dot."""
  config = preferences.get_config(method)
  for path, text in {**SMALL, **changes}.items():
    config = override(config, path.replace('__', '.'), text)
  return config


@pytest.mark.slow
def test_a_mixture_continues_bit_for_bit(toy, tmp_path, rows_of):
  """E0: HyPO on half data, half samples, with both orders in the checkpoint."""
  config = small(toy.get_method('hypo'), rollout__logged_prompts='4')
  loop.Trainer(config, str(tmp_path / 'whole')).run()
  loop.Trainer(override(config, 'iterations', '2'), str(tmp_path / 'cut')).run()
  loop.Trainer(config, str(tmp_path / 'cut')).run()
  whole = rows_of(tmp_path / 'whole')
  assert whole == rows_of(tmp_path / 'cut')
  last = whole[-1]
  assert last['preference/edges'] == 0.5  # of every second group
  assert last['rollout/tokens_total'] > 0
  assert last['rollout/logp_gap_max'] < 1e-4
  lines = read_jsonl(tmp_path / 'whole' / 'rollouts.jsonl')
  assert lines == read_jsonl(tmp_path / 'cut' / 'rollouts.jsonl')


@pytest.mark.slow
@pytest.mark.parametrize(('method', 'rows'), [('dpo', '2'), ('kto', '3')])
def test_recorded_rows_in_one_program(toy, tmp_path, method, rows, rows_of):
  """E1: losses of the loop, and its rows of other prompts."""
  config = small(
    toy.get_method(method), task__task__digits='1', rollout__group_size=rows
  )
  loop.Trainer(config, str(tmp_path)).run()
  metrics, *_ = program.WholeRuns([config]).run()
  found = program.rows(metrics, 0, 0)
  for row, expected in zip(found, rows_of(tmp_path), strict=True):
    for name in ('train/loss', 'reward/mean', 'rollout/tokens_total'):
      np.testing.assert_allclose(row[name], expected[name], rtol=1e-4)


def test_labels_with_a_reference_point(toy, tmp_path, rows_of):
  """KTO on single labels: its own row for the reference point."""
  task = RulePairs(Arithmetic(digits=2, signed=False), form='label')
  config = small(toy.get_method('kto'), iterations='2')
  config = override(config, 'rollout.group_size', '2')
  config = config.__class__(**{**vars(config), 'task': task})
  loop.Trainer(config, str(tmp_path)).run()
  first, second = rows_of(tmp_path)
  # At the reference every row has half its weight.
  np.testing.assert_allclose(first['train/loss'], 0.5, rtol=1e-6)
  assert second['preference/score_chosen'] != 0
  assert first['rollout/tokens_total'] == 0
  lines = read_jsonl(tmp_path / 'rollouts.jsonl')
  assert [line['weight'] for line in lines[:4]] == [1.0, 0.0] * 2


def refused(config, message):
  with pytest.raises(ValueError, match=message):
    validate(config)


def test_held_out_pairs_are_measured(toy, tmp_path, rows_of):
  """Margin 0 at the reference; above it on rows that were trained."""
  config = small(
    toy.get_method('dpo'),
    optimizer__learning_rate='1e-2',
    evaluation__every='4',
    evaluation__sample='False',
    evaluation__num_prompts='20',
    evaluation__split='train',
    task__task__digits='1',
  )
  loop.Trainer(config, str(tmp_path)).run()
  rows = rows_of(tmp_path)
  first, last = (row for row in rows if 'evaluation/loss' in row)
  np.testing.assert_allclose(first['evaluation/loss'], np.log(2), rtol=1e-5)
  assert first['evaluation/preference/margin'] == 0
  assert last['evaluation/preference/margin'] > 0.01
  assert 0 < last['evaluation/preference/accuracy'] <= 1
  assert 'evaluation/pass_at_1' not in last


def test_what_does_not_fit_is_refused(toy):
  """Before anything is compiled, with the field to change."""
  dpo = toy.get_method('dpo')
  validate(small(dpo))
  refused(small(dpo, rollout__logged_prompts='0'), 'recorded_prompts = 0')
  refused(small(dpo, rollout__logged_prompts='9'), 'is more than')
  with pytest.raises(ValueError, match='set it to 2'):
    check_recorded(small(dpo).task, 4, dpo)
  check_recorded(small(dpo).task, 1, dpo)  # the chosen response only
  with pytest.raises(ValueError, match='PairLoss compares 2 .* have 1$'):
    check_recorded(small(dpo, task__form='label').task, 2, dpo)
  refused(small(dpo, rollout__group_size='1'), 'group_size >= 2, got 1')
  with pytest.raises(ValueError, match='to another prompt: set it to 3'):
    check_recorded(small(dpo).task, 2, toy.get_method('kto'))
  kto = toy.get_method('kto')
  refused(small(kto, rollout__logged_prompts='1'), 'set it to 2 or more')
  alone = {'evaluation__every': '1', 'evaluation__sample': 'False'}
  config = small(dpo, **alone)
  sets = (EvaluationSet(name='own', task=Arithmetic()),)
  elsewhere = dataclasses.replace(config.evaluation, split=None, sets=sets)
  refused(dataclasses.replace(config, evaluation=elsewhere), 'a split')
  refused(small(toy.get_method('dapo')), 'method.group_filter draws further')
  recorded = {'task__task__digits': '1'}
  assert program.refusal(small(dpo, **recorded)) is None
  assert 'losses of held-out rows' in program.refusal(
    small(dpo, **recorded, evaluation__every='1')
  )


def test_selectors_are_asked_whether_the_prompts_fit(toy):
  """With over-long ones left out AdaRFT has no levels, in all kinds of runs."""
  config = chain.get_config(toy.get_method('adarft'))
  for path, text in {
    'task.num_train': '20',
    'rollout.max_prompt_tokens': '14',
    'rollout.overlong_prompt': "'skip'",
  }.items():
    config = override(config, path, text)
  tokenizer, task = CharTokenizer(config.task.alphabet), config.task
  prompts = PromptSet(task, 'train', tokenizer, 14, 'skip')
  rows, stages = (prompts, None), types.SimpleNamespace(score=None)
  for make in (
    lambda: sources.make_source(
      config, rows, stages, Judging(None), None, None
    ),
    lambda: scanned_prompts.encode(config, tokenizer),
  ):
    with pytest.raises(ValueError, match='TargetDifficulty reads the level'):
      make()


def test_a_selector_may_set_the_shares_of_a_mixture():
  """Six parts are six domains; a selector without shares is one for each."""
  config = configuration.build(
    'configs/worlds/family_mixture.py',
    'rule_reasoner@parts',
    ['task.parts.0.weight=5.0'],
  )
  tokenizer = CharTokenizer(config.task.alphabet)
  prompts = PromptSet(config.task, 'train', tokenizer, 20)
  key = jax.random.key(0)
  parts, fixed = (
    sources.host_selector(selector, config.task, prompts, key, None)
    for selector in (config.method.selector, ShuffledPass())
  )
  np.testing.assert_allclose(parts.state['share'], np.full(6, 1 / 6), rtol=1e-6)
  assert fixed.state['parts'].keys() == {*'crsdim'}
  drawn = fixed.select(20)
  assert (drawn < 2000).sum() == 10  # half of them, by its weight


def test_groups_of_both_kinds_have_the_fields_of_both(toy):
  """A key that one of them lacks is absent, and nothing is lost."""
  ones = np.ones((2, 3))
  drawn = toy.trajectories(
    ones,
    group_size=2,
    rewards={'outcome': np.ones(2), 'cluster_id': np.array([3.0, 4.0])},
    extras={
      'think_mask_BT': 2 * ones,
      'step_score_BT': 0.5 * ones,
    },
  )
  rows = toy.trajectories(
    ones,
    group_size=2,
    rewards={'outcome': np.zeros(2)},
    extras={
      'logged_B': np.ones(2),
      'semantic_distance_B': np.array([0.25, 0.0]),
      'aspect_label_BA': np.ones((2, 2)),
      'step_label_BT': ones,
    },
  )

  def inputs(traj):
    return {'think_mask_BT': traj.mask_BT * traj.length_B[:, None]}

  both = sources._join(inputs, drawn, rows)
  none = row_inputs.NO_LABEL
  for name, expected in {
    'logged_B': [0, 0, 1, 1],
    'semantic_distance_B': [0, 0, 0.25, 0],
    'aspect_label_BA': [[none] * 2] * 2 + [[1, 1]] * 2,
    'step_label_BT': [[-1] * 3] * 2 + [[1] * 3] * 2,
    'step_score_BT': [[0.5] * 3] * 2 + [[-1] * 3] * 2,
    'think_mask_BT': [[2] * 3] * 2 + [[3] * 3] * 2,
  }.items():
    np.testing.assert_array_equal(both.extras[name], expected, err_msg=name)
  np.testing.assert_array_equal(both.rewards['cluster_id'], [3, 4, -1, -1])
  np.testing.assert_array_equal(both.rewards['outcome'], [1, 1, 0, 0])
  strange = drawn.replace(extras={**drawn.extras, 'mine_B': drawn.weight_B})
  with pytest.raises(ValueError, match='recorded_prompts mixes .* mine_B'):
    sources._join(inputs, strange, rows)


def test_one_held_out_row_has_no_other_prompt(mesh):
  """KTO's baseline of it would be its own response."""
  task = RulePairs(Arithmetic(digits=1), form='label')
  own = CharTokenizer(task.alphabet)
  records = RecordedSet(task, 'validation', own, 6, max_response_tokens=5)
  source = RecordedSource(records, None, None, mesh, 2, mismatched=True)
  with pytest.raises(ValueError, match='evaluation.num_prompts: one recorded'):
    HeldOut(source, None, num_prompts=1)
