"""Whole runs with speculative decoding: same tokens, exact resume."""

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.decoding.drafts import acceptance
from rl_jax.overrides import override_all
from rl_jax.planning import memory_plan
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop

pytestmark = pytest.mark.usefixtures('no_mesh_left')

PREVIOUS = 'PreviousResponses(tokens=2, prompts=5)'


def make_config(method, **changes):
  own = {
    'evaluation.every': '0',
    'verifier.num_workers': '0',
    'iterations': '4',
    'rollout.max_response_tokens': '6',
    'rollout.speculative': PREVIOUS,
    **changes,
  }
  return override_all(bandit.get_config(method), own.items())


@pytest.mark.slow
def test_a_run_with_drafts(toy, stripped, tmp_path):
  """E0: 2 + 2 iterations equal 4; E2: the responses are those without.

  Those of evaluations, too.
  """
  evaluations = {
    'evaluation.every': '2',
    'evaluation.num_prompts': '8',
    'evaluation.num_samples': '2',
  }
  config = make_config(toy.get_method('grpo'), **evaluations)

  def run(name, config):
    trainer = loop.Trainer(config, str(tmp_path / name))
    trainer.run()
    return trainer

  def rows(name):
    return stripped(read_jsonl(tmp_path / name / 'metrics.jsonl'))

  whole = run('whole', config)
  run(
    'parts', make_config(toy.get_method('grpo'), iterations='2', **evaluations)
  )
  resumed = run('parts', config)
  trees = [
    (t.state, t.parts.stages.engine.drafts.arrays()) for t in (whole, resumed)
  ]
  jax.tree.map(np.testing.assert_array_equal, *trees)
  assert rows('parts') == rows('whole')
  assert (trees[0][1]['drafts']['id_M'] >= 0).any()
  run(
    'plain',
    make_config(
      toy.get_method('grpo'), **{'rollout.speculative': 'null'}, **evaluations
    ),
  )
  evaluated = [
    [row for row in rows(name) if 'evaluation/pass_at_1' in row]
    for name in ('whole', 'plain')
  ]
  for drafted, plain in zip(*evaluated, strict=True):
    assert drafted.pop('evaluation/accepted_length') > 1
    assert drafted.pop('evaluation/sample_accepted_length') > 1
    for name in plain:
      if name.startswith('evaluation/'):
        np.testing.assert_allclose(drafted[name], plain[name], rtol=1e-5)
  for row in rows('whole')[1:]:
    assert 1 < row['rollout/accepted_length'] <= 3
    assert row['rollout/logp_gap_max'] < 1e-4
  responses = [
    [row['response'] for row in read_jsonl(tmp_path / n / 'rollouts.jsonl')]
    for n in ('whole', 'plain')
  ]
  assert responses[0] == responses[1]


@pytest.mark.slow
def test_a_trained_run_drafts(toy, tmp_path):
  """E2: the checkpoint of another run as draft model, with a head.

  Coupled by one number for both, as runs were that began before there was
  another; by rejection the run differs, and its log-probs are as exact.
  """
  method, logged = toy.get_method('grpo'), {}
  head = acceptance.init_head(32, jax.random.key(0))
  acceptance.save_head(str(tmp_path / 'head.npz'), head)
  model = f"DraftModel(path='{tmp_path}/plain', tokens=2, head='HEAD'"
  model = model.replace('HEAD', str(tmp_path / 'head.npz'))
  for name, drafts in (
    ('plain', 'null'),
    ('drafted', f"{model}, coupling='uniform')"),
    ('rejection', f'{model})'),
  ):
    changes = {'iterations': '2', 'rollout.speculative': drafts}
    config = make_config(method, **changes)
    trainer = loop.Trainer(config, str(tmp_path / name))
    if name == 'drafted':
      _check_plan(config, trainer)
    trainer.run()
    found = read_jsonl(tmp_path / name / 'rollouts.jsonl')
    logged[name] = [row['response'] for row in found]
  assert logged['plain'] == logged['drafted']
  for name in ('drafted', 'rejection'):
    row = read_jsonl(tmp_path / name / 'metrics.jsonl')[-1]
    assert 1 < row['rollout/accepted_length'] <= 3
    assert row['rollout/logp_gap_max'] < 1e-4
  with pytest.raises(ValueError, match='no_such'):
    text = f"DraftModel(path='{tmp_path}/no_such')"
    config = make_config(method, **{'rollout.speculative': text})
    loop.Trainer(config, str(tmp_path / 'wrong'))


def _check_plan(config, trainer):
  """The draft has the shape of the policy; its parameters are counted once."""
  parts = trainer.parts
  found = memory_plan.estimate(config, parts.policy.model, parts.mesh)
  assert found.draft_model == found.parameters


def test_what_does_not_go_together(toy):
  method = toy.get_method('grpo')
  with pytest.raises(ValueError, match='rollout.speculative.*or None'):
    make_config(method, **{'rollout.speculative': '3'})
  with pytest.raises(ValueError, match="'PromptLockup'.*'PromptLookup'"):
    make_config(method, **{'rollout.speculative': 'PromptLockup()'})
  validate(make_config(method))
