"""Policies that a method reads from files."""

import dataclasses

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.source import ModelSource
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.pieces.policies import CopyEvery, Loaded
from rl_jax.runs import fingerprints, loaded_policies, loop, policies
from rl_jax.runs import policy as policy_lib
from rl_jax.worlds import Bandit

pytestmark = pytest.mark.usefixtures('mesh')


@pytest.fixture(scope='module')
def saved(tiny, tmp_path_factory):
  """Models of the bandit's tokens, of other tokens, and of another width."""
  folder = tmp_path_factory.mktemp('policies')
  alphabet = Bandit().alphabet
  for name, letters, width in (
    ('same', alphabet, tiny.CFG.width),
    ('tokens', alphabet[::-1], tiny.CFG.width),
    ('width', alphabet, 2 * tiny.CFG.width),
  ):
    tokenizer = CharTokenizer(letters)
    size = {'vocab_size': tokenizer.vocab_size, 'width': width}
    cfg = dataclasses.replace(tiny.CFG, **size, value_head=False)
    params = params_lib.init_params(cfg, jax.random.key(5))
    model_dir.save_model(str(folder / name), cfg, params, tokenizer)
  return folder


def own_policy(tiny, mesh):
  """The policy of a run with a critic, of other weights."""
  source = ModelSource(config=tiny.CFG, value_head=True)
  return policy_lib.load(source, Bandit(), 0, mesh)


def test_the_critic_may_begin_as_a_reward_model(tiny, saved, mesh):
  """Only its head is read; one of another shape, or none, is named."""
  path = str(saved / 'critic')
  tokenizer, size = CharTokenizer(Bandit().alphabet), tiny.CFG.width
  cfg = dataclasses.replace(tiny.CFG, vocab_size=tokenizer.vocab_size)
  params = params_lib.init_params(cfg, jax.random.key(5))
  head = {'w': np.arange(size, dtype=np.float32) / 2.0, 'b': np.float32(3.0)}
  params['value_head'] = head
  model_dir.save_model(path, cfg, params, tokenizer)
  source = ModelSource(config=tiny.CFG, value_head=True, value_from=path)
  own, plain = (
    policy_lib.load(x, Bandit(), 0, mesh).trainable
    for x in (source, dataclasses.replace(source, value_from=None))
  )
  np.testing.assert_array_equal(own['value_head']['w'], np.arange(size) / 2.0)
  assert float(own['value_head']['b']) == 3.0
  jax.tree.map(np.testing.assert_array_equal, own['model'], plain['model'])
  for path in ('same', 'width'):
    other = dataclasses.replace(source, value_from=str(saved / path))
    with pytest.raises(ValueError, match='value head of shape None'):
      policy_lib.load(other, Bandit(), 0, mesh)
  with pytest.raises(ValueError, match='without value_head=True'):
    dataclasses.replace(source, value_head=False)


def test_weights_are_those_of_the_file(tiny, saved, mesh):
  """The value head is the run's own, in its own buffer."""
  own, path = own_policy(tiny, mesh), str(saved / 'same')
  rules = {'implied': Loaded(path=path), 'other': CopyEvery(iterations=2)}
  found = loaded_policies.read(rules, own, mesh)
  assert set(found) == {'implied'}
  _, params, _ = policy_lib.load_checkpoint(path, mesh)
  jax.tree.map(
    np.testing.assert_array_equal, found['implied']['model'], params['model']
  )
  head = [x['value_head']['w'] for x in (found['implied'], own.trainable)]
  np.testing.assert_array_equal(*head)
  assert head[0] is not head[1]
  trees = policies.initial(rules, own.trainable, found)
  assert trees['implied'] is found['implied']
  assert policies.moving(rules, trees) == {'other': trees['other']}


@pytest.mark.parametrize(
  'name, message',
  [('tokens', 'the vocabulary of the run'), ('width', 'has another model')],
)
def test_other_models_are_refused(name, message, tiny, saved, mesh):
  rules = {'implied': Loaded(path=str(saved / name))}
  with pytest.raises(ValueError, match=f"'implied' .*{message}"):
    loaded_policies.read(rules, own_policy(tiny, mesh), mesh)


def test_programs_that_do_not_read_files_say_so():
  with pytest.raises(ValueError, match="'implied' is read from runs/dpo"):
    policies.initial({'implied': Loaded(path='runs/dpo')}, {})


def configured(toy, tiny, path):
  """RTO on the bandit, four prompts by two samples."""
  config = bandit.get_config(toy.get_method('rto'))
  source = ModelSource(config=tiny.CFG, value_head=True)
  config = dataclasses.replace(config, model=source)
  for field, text in {
    'rollout.num_prompts': '4',
    'rollout.group_size': '2',
    'evaluation.every': '0',
    'iterations': '4',
    'verifier.num_workers': '0',
    'method.shaping.ImplicitReward.path': path,
  }.items():
    config = override(config, field, text)
  return config


@pytest.mark.slow
def test_a_run_continues_bit_for_bit(toy, tiny, saved, tmp_path, rows_of):
  """E0: 4 iterations = 2, and 2 by a new trainer; the files are recorded."""
  config = configured(toy, tiny, str(saved / 'same'))
  assert any(
    key.startswith('method.policies.implied/')
    for key in fingerprints.of(config)
  )
  loop.Trainer(config, str(tmp_path / 'whole')).run()
  loop.Trainer(override(config, 'iterations', '2'), str(tmp_path / 'cut')).run()
  loop.Trainer(config, str(tmp_path / 'cut')).run()
  whole, cut = (rows_of(tmp_path / name) for name in ('whole', 'cut'))
  assert whole == cut and len(whole) == 4
