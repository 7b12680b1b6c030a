"""Plans hold the programs of episodes and of held-out losses."""

import dataclasses

import jax
import pytest

from configs.worlds import keydoor, preferences
from rl_jax.decoding import slot_decode
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.planning import abstract_run
from rl_jax.runtime import mesh as mesh_lib

SMALL = presets.small(vocab_size=300, num_heads=4, head_size=16, mlp_size=128)


def lowered(config):
  """The programs of one CPU device, by stage."""
  config = dataclasses.replace(config, model=ModelSource(config=SMALL))
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  return abstract_run.AbstractRun(config, SMALL, mesh).lower()


def episodes(toy, **fields):
  """128 rows of up to 16 turns, evaluated in calls of 16."""
  config = keydoor.get_config(toy.get_method('grpo'))
  evaluated = dataclasses.replace(
    config.evaluation, every=1, sample=True, num_prompts=16, batch_prompts=16
  )
  rollout = dataclasses.replace(config.rollout, **fields)
  return dataclasses.replace(config, rollout=rollout, evaluation=evaluated)


def of_sampling(found):
  """The stages before the update."""
  return [x for x in found if x not in ('score', 'make_batch', 'update')]


def test_episodes_have_a_program_of_each_number_of_slots(toy):
  """All 128 rows and half of them, 32 and 8 to feed; evaluations have 16."""
  config = episodes(toy)
  found = lowered(config)
  assert of_sampling(found) == [
    'generate',
    'feed',
    'feed 32',
    'sample',
    'sample 64',
    'evaluate',
    'evaluate feed',
    'evaluate feed 16',
    'evaluate sample',
    'evaluate sample 8',
  ]
  table, drawn = found['sample 64'].out_info
  tokens = config.rollout.turn_limits.max_turn_tokens
  # Three numbers of each slot come first.
  assert drawn.shape == (64, 3 + min(tokens, slot_decode.LONGEST))
  assert table.rows.response_BT.shape == (128, 80)


def test_fewer_slots_than_rows_are_the_most_of_a_call(toy):
  found = lowered(episodes(toy, slots=12))
  _, drawn = found['sample'].out_info
  assert drawn.shape[0] == 12
  assert 'sample 6' not in found


def test_rows_that_move_to_the_host_have_two_programs(toy):
  """By hand: a row of 80 places leaves, and only it is copied as it returns.

  Evaluations have places for all of their rows.
  """
  config = episodes(toy, cache_tokens=16 * 80, host_cache_tokens=800)
  found = lowered(config)
  assert [name for name in found if 'kept' in name or 'returned' in name] == [
    'kept',
    'returned',
  ]
  keys = found['kept'].out_info
  row = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(keys))
  assert row == 2 * 2 * 2 * 16 * 4 * 80
  stats = found['kept'].compile().memory_analysis()
  assert stats.output_size_in_bytes + stats.temp_size_in_bytes < 1.1 * row
  stats = found['returned'].compile().memory_analysis()
  new = stats.output_size_in_bytes - stats.alias_size_in_bytes
  assert new + stats.temp_size_in_bytes < 0.1 * row
  without = lowered(episodes(toy, cache_tokens=16 * 80))
  assert 'kept' not in without


@pytest.mark.parametrize('name', ['dpo', 'kto'])
def test_held_out_rows_have_a_program(toy, name):
  """Its metrics are those that a run shows; no evaluation, no program."""
  config = preferences.get_config(toy.get_method(name))
  metrics = lowered(config)['held out'].out_info
  assert 'loss' in metrics
  assert any(one.startswith('preference/') for one in metrics)
  never = dataclasses.replace(config.evaluation, every=0)
  assert 'held out' not in lowered(
    dataclasses.replace(config, evaluation=never)
  )
