"""Learned rewards in the loop: exact resume, refusals, rows without a score."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.judging.learned import with_learned
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.judge_source import Judge, Revision
from rl_jax.models.reward_source import RewardModel
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.planning import memory_plan
from rl_jax.runs import loop, reward_models
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime.platform import Platform
from rl_jax.worlds import Bandit, Chain

pytestmark = pytest.mark.usefixtures('mesh')


@pytest.fixture(scope='module')
def saved(toy, tiny, tmp_path_factory):
  """Reward models: of the bandit, of the bandit without a head, of others."""
  folder, tokenizer = (
    tmp_path_factory.mktemp('rm'),
    CharTokenizer(Bandit().alphabet),
  )
  size = tokenizer.vocab_size
  names = {'head': True, 'none': False, 'other': True}
  for name, head in names.items():
    if name == 'other':
      tokenizer = CharTokenizer('xyz')
    cfg = dataclasses.replace(tiny.CFG, vocab_size=size, value_head=head)
    params = params_lib.init_params(cfg, jax.random.key(1))
    if head:
      params['value_head']['w'] += 1.0
    model_dir.save_model(str(folder / name), cfg, params, tokenizer)
  return folder


def configured(toy, *sources, **changes):
  """GRPO on the bandit, four prompts by four samples."""
  config = bandit.get_config(toy.get_method('grpo'))
  small = {
    'rollout.num_prompts': '4',
    'rollout.group_size': '4',
    'evaluation.every': '0',
    'iterations': '4',
    'verifier.num_workers': '0',
  }
  for path, text in (small | changes).items():
    config = override(config, path, text)
  return dataclasses.replace(config, reward_models=sources)


def test_the_reward_is_the_weighted_sum(toy, saved, tmp_path, rows_of):
  """The host's rounds know those of task and judges only."""
  source = RewardModel(path=str(saved / 'head'), weight=0.5, center=1.0)
  config = configured(toy, source, iterations='1')
  asks = {'template': '{prompt}{response}', 'labels': ('a', 'b')}
  judge = Judge(weight=0.25, **asks)  # the policy itself
  config = dataclasses.replace(config, judges=(judge,))
  config = override(config, 'evaluation.every', '1')
  loop.Trainer(config, str(tmp_path)).run()
  *_, row = rows_of(tmp_path)
  on_host = row['reward/outcome'] + 0.25 * row['reward/judge']
  total = on_host + 0.5 * row['reward/learned']
  np.testing.assert_allclose(row['reward/mean'], total, rtol=1e-5)
  assert row['reward/learned'] != 0
  assert 0 < row['reward/judge'] < 1
  np.testing.assert_allclose(row['rollout/reward'], on_host, rtol=1e-5)
  judged = row['evaluation/reward/judge']
  assert 0 < judged < 1
  total = row['evaluation/reward/outcome'] + 0.25 * judged
  np.testing.assert_allclose(row['evaluation/reward/mean'], total, rtol=1e-5)


@pytest.mark.parametrize('judged', [False, True])
def test_nash_md_by_pairs(toy, saved, tmp_path, judged, rows_of):
  """Win rates against the opponent are in the rewards and in the rounds."""
  source = RewardModel(path=str(saved / 'head'), separator='A', name='pairs')
  asks = Judge(name='pairs', template='{first}{second}', labels=('a', 'b'))
  config = configured(toy, *(() if judged else (source,)), iterations='1')
  task = dataclasses.replace(config.task, reward_weights={'outcome': 0.0})
  config = dataclasses.replace(
    config,
    task=task,
    judges=(asks,) if judged else (),
    method=toy.get_method('nash_md'),
  )
  loop.Trainer(config, str(tmp_path)).run()
  *_, row = rows_of(tmp_path)
  assert 0 < row['reward/pairs'] < 1 and row['reward/pairs'] != 0.5
  np.testing.assert_allclose(row['reward/mean'], row['reward/pairs'], rtol=1e-6)
  if judged:
    np.testing.assert_allclose(row['rollout/reward'], 0.5, rtol=1e-5)
    assert row['rollout/unread_judgements'] == 0


@pytest.mark.slow
def test_a_run_continues_bit_for_bit(toy, saved, tmp_path, rows_of):
  """E0: 4 iterations = 2, and 2 by a new trainer; so is a rubric."""
  config = configured(toy, RewardModel(path=str(saved / 'head')))
  revision = Revision(
    every=1,
    samples=1,
    refine='{response}',
    merge='{rubrics}',
    max_tokens=8,
    answer_tokens=2,
  )
  judge = Judge(
    template='{rubric}{response}',
    labels=('a', 'b'),
    rubric='c',
    revision=revision,
  )
  config = dataclasses.replace(config, judges=(judge,))
  loop.Trainer(config, str(tmp_path / 'whole')).run()
  loop.Trainer(override(config, 'iterations', '2'), str(tmp_path / 'cut')).run()
  loop.Trainer(config, str(tmp_path / 'cut')).run()
  assert rows_of(tmp_path / 'whole') == rows_of(tmp_path / 'cut')
  versions = [x['rollout/rubric_version'] for x in rows_of(tmp_path / 'cut')]
  assert versions == [0.0, 1.0, 2.0, 3.0]


def test_a_row_without_a_finite_score_counts_nowhere(toy):
  """E0: it is invalid; the others have the weighted sum."""
  traj = toy.trajectories(
    np.ones((2, 1)), group_size=2, reward_B=np.array([1.0, 2.0])
  )
  steps = jnp.array([[0.5], [-1.0]])  # of tokens: no reward
  scores = {'a': jnp.array([3.0, jnp.nan]), 'b': jnp.array([1.0, 1.0])}
  scores['step_score_BT'] = steps
  found = with_learned({'a': 0.5, 'b': 0.0}, traj, scores)
  assert found.valid_B.tolist() == found.weight_B.tolist() == [1.0, 0.0]
  assert found.reward_B.tolist() == [2.5, 2.0]
  assert found.rewards['a'].tolist() == [3.0, 0.0]
  assert set(found.rewards) - set(traj.rewards) == {'a', 'b'}
  assert found.extras['step_score_BT'] is steps


@pytest.mark.parametrize(
  'sources, changes, message',
  [
    ((RewardModel(path='x', name='outcome'),), {}, "'outcome' is taken"),
    ((RewardModel(path='x'),) * 2, {}, "'learned' is taken"),
    ((Bandit(),), {}, 'which is not a RewardModel'),
    (
      (RewardModel(path='x'),),
      {'rollout.recorded_prompts': '4'},
      'leaves none',
    ),
  ],
)
def test_what_has_no_place_is_refused(toy, sources, changes, message):
  with pytest.raises(ValueError, match=message):
    validate(configured(toy, *sources, **changes))


def test_a_model_that_does_not_fit_is_named(toy, saved, mesh):
  """Without a head; with other tokens; in fields; before anything compiles."""
  config = configured(toy)
  with pytest.raises(ValueError, match="'learned': .*none has no value head"):
    reward_models.load(RewardModel(path=str(saved / 'none')), config, mesh)
  source = RewardModel(path=str(saved / 'head'), name='nice')
  *_, tokens = reward_models.load(source, config, mesh)
  size = tokens.vocab_size
  name = "model 'nice' (head)"
  reward_models.check_tokens(name, tokens, tokens, size)
  other = CharTokenizer(Bandit().alphabet[::-1])
  with pytest.raises(ValueError, match="'nice' .*head.* token 2 is another"):
    reward_models.check_tokens(name, other, tokens, size)
  with pytest.raises(ValueError, match=f'has {size} tokens, it has 3'):
    reward_models.check_tokens(name, tokens, tokens, 3)
  with pytest.raises(ValueError, match="name = 'a b' is not an identifier"):
    RewardModel(path='x', name='a b')


def test_tokens_that_end_a_step_are_those_of_step_ends():
  """By default those that end a line, of which the chain has none."""
  tokenizer = CharTokenizer(Chain.alphabet)
  model = RewardModel(path='x', steps='min')
  with pytest.raises(ValueError, match=r"step_ends = \('\\n',\)"):
    reward_models.step_ids(model, tokenizer)
  model = dataclasses.replace(model, step_ends=(';', '>'))
  found = reward_models.step_ids(model, tokenizer)
  assert sorted(tokenizer.token_bytes[i] for i in found) == [b';', b'>']
  assert reward_models.step_ids(RewardModel(path='x'), tokenizer) == ()


def test_another_chat_template_is_logged(caplog):
  """With the same tokens the policy's own is scored."""
  alphabet = Bandit().alphabet
  own, other = CharTokenizer(alphabet), CharTokenizer(alphabet)
  object.__setattr__(other, 'chat_template', '{{ messages }}')
  name = "reward model 'nice'"
  with caplog.at_level('WARNING'):
    reward_models.check_tokens(name, own, own, own.vocab_size)
    assert not caplog.records
    reward_models.check_tokens(name, own, other, own.vocab_size)
  assert "'nice' has another chat template" in caplog.text


def test_the_plan_counts_parameters(toy, saved, mesh, tiny):
  """4 bytes each, in what a run keeps."""
  config = configured(toy, RewardModel(path=str(saved / 'head')))
  model = policy_lib.planned_model(config.model, config.task, Platform())
  plan = memory_plan.estimate(config, model, mesh)
  own = reward_models.planned(config.reward_models[0], config, Platform())
  count = sum(x.size for x in jax.tree.leaves(params_lib.shapes(own, mesh)))
  assert plan.reward_models == 4 * count > 0
  without = memory_plan.estimate(configured(toy), model, mesh)
  assert plan.kept == without.kept + plan.reward_models
  asks = Judge(path=str(saved / 'head'), template='{response}')
  judged = dataclasses.replace(config, judges=(asks, Judge(name='own')))
  both = memory_plan.estimate(judged, model, mesh)
  assert both.reward_models == 2 * plan.reward_models  # the policy is there


@pytest.mark.parametrize(
  'name, message',
  [
    ('none', "reward model 'learned': .*none has no value head"),
    ('other', r"'learned' \(.*other\) does not have the vocabulary of the pol"),
  ],
)
def test_a_run_does_not_start_with_a_model_that_does_not_fit(
  toy, saved, tmp_path, name, message
):
  """By name, before there is anything to continue."""
  config = configured(toy, RewardModel(path=str(saved / name)))
  with pytest.raises(ValueError, match=message):
    loop.Trainer(config, str(tmp_path)).run()
  assert not list(tmp_path.glob('checkpoints/*'))
  assert not (tmp_path / 'metrics.jsonl').exists()
