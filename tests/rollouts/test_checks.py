"""Fields of a rollout that do not go together."""

import dataclasses
import pathlib

import pytest

from configs.worlds import bandit, keydoor
from rl_jax.config import on_devices, validate
from rl_jax.episodes.turns import crosses_updates
from rl_jax.models.judge_source import Judge, Revision
from rl_jax.overrides import override
from rl_jax.pieces.selection import TopSpread, ZeroVariance
from rl_jax.planning.sizes import tables_of_episodes
from rl_jax.rollouts.wrappers.guided import HintGuided


@pytest.mark.parametrize(
  'path, text, named',
  [
    ('rollout.parts', '3', 'parts = 3 must divide rollout.num_prompts = 8'),
    ('rollout.window_tokens', '1', 'parts = 4 with rollout.window_tokens'),
    ('mesh.data', '4', 'mesh.fsdp = 4 must divide the prompts of .* = 2'),
  ],
)
def test_parts_that_cannot_be_are_refused(toy, path, text, named):
  """Before anything is compiled."""
  config = bandit.get_config(toy.get_method('reinforce'))
  config = override(config, 'rollout.parts', '4')
  validate(config)
  with pytest.raises(ValueError, match=named):
    validate(override(config, path, text))


def test_rows_of_rollout_pieces_are_not_verified_in_parts(toy):
  """Wrappers that begin rows or add their own rounds."""
  method = toy.get_method('reinforce').replace(rollout=HintGuided())
  config = override(bandit.get_config(method), 'rollout.parts', '2')
  with pytest.raises(ValueError, match=r'parts = 2 with method\.rollout'):
    validate(config)


def test_as_many_devices_as_share_a_part(toy):
  """Eight prompts in four parts: two at a time, so two of eight devices."""
  config = bandit.get_config(toy.get_method('reinforce'))
  assert on_devices(config, 8).mesh.data == 8
  config = override(config, 'rollout.parts', '4')
  assert on_devices(config, 8).mesh.data == 2


def test_episodes_and_drafts_have_no_shared_cache(toy):
  """Their rows write their own columns."""
  config = bandit.get_config(toy.get_method('reinforce'))
  config = override(config, 'rollout.cache_tokens', '64')
  validate(config)
  drafts = override(config, 'rollout.speculative', 'PromptLookup(tokens=2)')
  with pytest.raises(ValueError, match=r'cache_tokens = 64 with rollout\.spec'):
    validate(drafts)


@pytest.mark.parametrize(
  'settings, named',
  [
    ({'cache_tokens': '79'}, 'rollout.cache_tokens = 79: expected at least'),
    (
      {'cache_tokens': '80', 'host_cache_tokens': '159'},
      'rollout.host_cache_tokens = 159: expected at least twice',
    ),
    (
      {'host_cache_tokens': '160'},
      'rollout.host_cache_tokens = 160 with rollout.cache_tokens = None',
    ),
    (
      {'cache_tokens': '80', 'host_cache_tokens': '160', 'turns': 'null'},
      'rollout.host_cache_tokens = 160 with rollout.turns = None',
    ),
  ],
)
def test_caches_of_episodes_that_cannot_be_are_refused(toy, settings, named):
  """Rows of 80 tokens; the fields of the cache of devices and of the host."""
  config = keydoor.get_config(toy.get_method('reinforce'))
  settings = dict(settings)
  if 'turns' in settings:
    config = bandit.get_config(toy.get_method('reinforce'))
    settings.pop('turns')
  for name, text in settings.items():
    config = override(config, f'rollout.{name}', text)
  with pytest.raises(ValueError, match=named):
    validate(config)


def test_players_of_a_game_do_not_share_a_cache(toy, monkeypatch):
  """They need their places in turn, and could wait for each other for ever."""
  monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[1])
  import misbehaving_environments

  config = keydoor.get_config(toy.get_method('reinforce'))
  config = override(config, 'rollout.cache_tokens', '160')
  validate(config)
  task = misbehaving_environments.RallyTask()
  with pytest.raises(ValueError, match='cache_tokens = 160, but RallyTask'):
    validate(dataclasses.replace(config, task=task))


def test_rubrics_are_not_revised_while_groups_are_filtered(toy):
  """With a filter, across updates: a revision reads whole batches.

  So none starts early, which is an error only where groups are to arrive.
  """
  method = toy.get_method('reinforce').replace(group_filter=ZeroVariance())
  config = override(keydoor.get_config(method), 'guards.max_logp_gap', 'null')
  judge = Judge(template='{rubric}{response}', labels=('u', 'd'), weight=0.5)
  judge = dataclasses.replace(judge, rubric='up')
  revised = dataclasses.replace(judge, revision=Revision())
  for value, match in (
    ((judge,), None),
    ((revised,), r"and a revision of the judges \['judge'\]: across"),
  ):
    judged = dataclasses.replace(config, judges=value)
    validate(judged)
    stale = override(judged, 'rollout.staleness', '1')
    validate(stale)
    assert crosses_updates(stale) == (match is None)
    arriving = override(stale, 'rollout.order', 'arrival')
    if match is None:
      validate(arriving)
      continue
    with pytest.raises(ValueError, match=f'group_filter = .* {match}'):
      validate(arriving)


def test_tables_of_episodes_are_planned(toy):
  """One for each version that may be open; more by arrival, and if groups that
  are dropped are replaced."""
  plain = toy.get_method('reinforce')
  config = keydoor.get_config(plain)
  filtered = plain.replace(group_filter=ZeroVariance())
  compares = plain.replace(group_filter=TopSpread())
  for fields, method, count in (
    ({}, plain, 1),
    ({'staleness': 2}, plain, 3),
    ({'staleness': 2, 'order': 'arrival'}, plain, 4),
    ({'staleness': 2}, filtered, 6),
    ({'staleness': 2}, compares, 1),
  ):
    rollout = dataclasses.replace(config.rollout, **fields)
    changed = dataclasses.replace(config, rollout=rollout, method=method)
    assert tables_of_episodes(changed) == count
