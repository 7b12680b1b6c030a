"""The memory plan of pieces that read other policies or make larger groups."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest

from configs.worlds import bandit, preferences
from experiments.flags import configuration
from rl_jax.decoding import SamplingConfig
from rl_jax.decoding.beam_search import beam_search
from rl_jax.decoding.generate import start_trajectories
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.pieces.logits.policy_mixture import PolicyMixture
from rl_jax.planning import abstract_run, memory_plan
from rl_jax.rollouts import wrappers
from rl_jax.runtime import mesh as mesh_lib

SMALL = presets.small(vocab_size=300, num_heads=4, head_size=16, mlp_size=128)
TOKEN = 2 * 2 * 2 * 16 * 4  # bytes of keys and values in 2 layers, 2 heads
EVALUATION = {
  'evaluation__every': '1',
  'evaluation__num_prompts': '32',
  'evaluation__batch_prompts': '32',
  'evaluation__max_response_tokens': '64',
}


def make_config(toy, piece=None, logits=(), **changes):
  """GRPO on 16 prompts of 16 and 8 samples of 32 tokens, in 4 pieces."""
  config = bandit.get_config(toy.get_method('grpo'))
  changes = {
    'rollout__num_prompts': '16',
    'rollout__max_prompt_tokens': '16',
    'rollout__max_response_tokens': '32',
    'update__microbatch_prompts': '4',
    **changes,
  }
  for path, text in changes.items():
    config = override(config, path.replace('__', '.'), text)
  method = dataclasses.replace(config.method, rollout=piece, logits=logits)
  return dataclasses.replace(
    config, model=ModelSource(config=SMALL), method=method
  )


def plan(config):
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig())
  return memory_plan.estimate(config, SMALL, mesh)


def used(lowered):
  """Bytes by XLA."""
  stats = lowered.compile().memory_analysis()
  total = stats.argument_size_in_bytes + stats.temp_size_in_bytes
  return total + stats.output_size_in_bytes - stats.alias_size_in_bytes


@pytest.mark.parametrize(
  'changes',
  [
    {'logits': (PolicyMixture(coef=0.5),)},
    {'piece': wrappers.Against()},
    {'piece': wrappers.BesideRecord()},
    {'piece': wrappers.Opponent()},
  ],
)
def test_every_policy_that_samples_has_a_cache(toy, changes):
  """But in evaluations, where only games have an opponent."""
  plain, found = (
    plan(make_config(toy, **given, **EVALUATION)) for given in ({}, changes)
  )
  assert found.cache == 2 * plain.cache
  games = isinstance(changes.get('piece'), wrappers.Opponent)
  assert (found.evaluation > plain.evaluation) == games


def test_records_beside_samples_of_the_policy_need_one_cache(toy):
  """With coef = 0 there is no mixture."""
  piece = wrappers.BesideRecord(coef=0.0)
  assert plan(make_config(toy, piece)).cache == plan(make_config(toy)).cache


@pytest.mark.parametrize(
  ('piece', 'times'),
  [
    (wrappers.HintGuided(), 2),
    (wrappers.Against(), 2),
    (wrappers.BesideRecord(), 2),
    (wrappers.ReflectedClones(texts=('a',)), 2),
    (wrappers.TreeSearch(expansions=3), 4),
    (wrappers.UncertaintyAllocation(most=2), 3),
  ],
)
def test_groups_that_a_piece_widens_are_trained_on(toy, piece, times):
  """It trains on as many rows as such groups have; as many as before are
  sampled.
  """
  found, plain = plan(make_config(toy, piece)), plan(make_config(toy))
  size = {'rollout__group_size': str(8 * times)}
  wide = plan(make_config(toy, **size))
  for name in ('activations', 'logits', 'rollout'):
    assert getattr(found, name) == getattr(wide, name), name
  assert found.scratch <= 2 * plain.scratch


@pytest.mark.parametrize(
  'piece',
  [wrappers.SegmentValues(samples=4), wrappers.CandidateSteps(samples=4)],
)
def test_continuations_are_sampled_at_once(toy, piece):
  """Four of each row, whose groups an update does not see."""
  found, plain = plan(make_config(toy, piece)), plan(make_config(toy))
  wide = plan(make_config(toy, rollout__group_size='32'))
  assert (found.cache, found.scratch) == (wide.cache, wide.scratch)
  assert found.update == plain.update


def test_beams_of_an_evaluation_are_counted(toy):
  """By hand: 32 prompts once, 8 beams of 64 tokens, twice as they are taken."""
  config = make_config(toy, **EVALUATION, evaluation__beams='8')
  cache = TOKEN * 32 * (16 + 2 * 8 * 64)
  # The MLP of all prompts, which is more than the logits of all beams.
  scratch = max(5 * 128 * 32 * 16 * 4, 3 * 32 * 8 * 300 * 4)
  assert plan(config).evaluation == cache + scratch + 4 * 4 * 32 * 64


@pytest.mark.parametrize('cache_tokens', ['null', '512'])
def test_rows_of_data_are_not_sampled(toy, cache_tokens):
  """Half of 16 prompts as a rollout of 8; none without samples."""
  cache = {'rollout__cache_tokens': cache_tokens}
  changes = {'rollout__num_prompts': '8', **cache}
  eight = plan(make_config(toy, **changes))
  found = plan(make_config(toy, rollout__logged_prompts='8', **cache))
  assert (found.cache, found.scratch) == (eight.cache, eight.scratch)
  assert found.rollout == 2 * eight.rollout
  none = plan(make_config(toy, rollout__logged_prompts='16', **cache))
  assert none.cache == none.scratch == 0 < none.activations


def test_rounded_weights_are_a_copy(toy):
  """Only weights of the dtype of products are read as they are."""
  assert plan(make_config(toy)).sampler_weights == 0
  found = plan(make_config(toy, rollout__sampler_weights='int8'))
  assert found.sampler_weights == found.parameters


@pytest.mark.slow
def test_a_widened_update_needs_what_is_planned(toy):
  """Within a factor of 1.5 of compiled.memory_analysis()."""
  config = make_config(
    toy, wrappers.HintGuided(), rollout__max_response_tokens='64'
  )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  lowered = abstract_run.AbstractRun(config, SMALL, mesh).lower()['update']
  found = plan(config)
  assert 1 / 1.5 < (found.update - found.reference) / used(lowered) < 1.5


@pytest.mark.slow
def test_beams_need_what_is_planned(toy):
  """Within a factor of 1.5 as well."""
  config = make_config(toy, **EVALUATION, evaluation__beams='8')
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  start = functools.partial(
    start_trajectories, group_size=1, max_response_tokens=64
  )
  traj = jax.eval_shape(
    start, jnp.zeros((32, 16)), jnp.ones((32, 16)), jnp.arange(32)
  )
  search = functools.partial(
    beam_search,
    cfg=SMALL,
    sampling=SamplingConfig(eos_ids=(0,)),
    max_new_tokens=64,
    beams=8,
  )
  with jax.set_mesh(mesh):
    params = params_lib.shapes(SMALL, mesh)
    lowered = jax.jit(search).lower(params, traj=traj, key=jax.random.key(0))
  found = plan(config)
  wanted = found.parameters + found.evaluation
  assert 1 / 1.5 < wanted / used(lowered) < 1.5


@pytest.mark.parametrize('name', ['dpo', 'kto'])
def test_runs_on_data_lower(toy, name):
  """Pieces find the labels of pairs, and the rows of other prompts."""
  config = preferences.get_config(toy.get_method(name))
  config = dataclasses.replace(config, model=ModelSource(config=SMALL))
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  lowered = abstract_run.AbstractRun(config, SMALL, mesh).lower()
  assert {'make_batch', 'update'} <= {*lowered}


@pytest.mark.parametrize(
  ('world', 'name', 'sets'),
  [
    ('bandit', 'xpo', ()),
    ('bandit', 'remax', ()),
    ('bandit', 'seed_grpo', ()),
    ('bandit', 'copo', ()),  # its loss reads the same
    pytest.param(
      'told_keydoor', 'oni', ('model.value_head=True',), marks=pytest.mark.slow
    ),
    ('bandit', 'spo_tree', ('method.rollout.segment_tokens=1',)),
    pytest.param('arithmetic', 'spin', (), marks=pytest.mark.slow),
    pytest.param('bandit', 'mcts_dpo', (), marks=pytest.mark.slow),
    pytest.param('bandit', 'spo_chain', (), marks=pytest.mark.slow),
    pytest.param(
      'chain', 'direct_advantage@candidates', (), marks=pytest.mark.slow
    ),
  ],
)
def test_stages_know_what_pieces_fill_in(world, name, sets):
  """Extras that later pieces read are there without a rollout."""
  config = configuration.build(world, name, ['rollout.num_prompts=8', *sets])
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  model = dataclasses.replace(SMALL, value_head=config.model.value_head)
  run = abstract_run.AbstractRun(config, model, mesh)
  assert {'make_batch', 'update'} <= run.lower().keys()
