"""Configurations survive JSON, and only configuration classes come back."""

import dataclasses
import json

import pytest

from configs import arithmetic, bandit
from experiments import configuration
from rl_jax import losses
from rl_jax.aggregation import TokenMean
from rl_jax.method import Method
from rl_jax.overrides import override
from rl_jax.serialization import difference, from_json, to_json

REINFORCE = Method(losses=(losses.Reinforce(),), aggregation=TokenMean())


@pytest.mark.parametrize('name', configuration.names('configs'))
def test_every_configuration_with_every_method_survives_json(toy, name):
  """E0: equal after a round trip, with equal text the second time."""
  for method in toy.method_names():
    config = configuration.load_config(name, toy.get_method(method))
    text = to_json(config)
    again = from_json(text)
    assert again == config, method
    assert to_json(again) == text, method
    assert difference(config, again) == [], method


def test_types_survive():
  """Tuples, None, dicts, floats that are whole, and infinities."""
  config = arithmetic.get_config(REINFORCE)
  config = override(config, 'optimizer.clip_norm', 'null')
  config = override(config, 'optimizer.learning_rate', '1')
  again = from_json(to_json(config))
  assert again.optimizer.clip_norm is None
  assert type(again.optimizer.learning_rate) is float
  assert isinstance(again.model.config.lora_targets, tuple)
  assert isinstance(again.task.reward_weights, dict)
  assert hash(again.model.config) == hash(config.model.config)
  guards = dataclasses.replace(config.guards, max_logp_gap=float('inf'))
  assert from_json(to_json(guards)) == guards


@pytest.mark.parametrize(
  ('path', 'message'),
  [
    ('subprocess.Popen', 'not a class of this project'),
    ('os.system', 'not a class of this project'),
    ('rl_jaxx.config.RolloutConfig', 'not a class of this project'),
    ('rl_jax.overrides.parse_piece', 'not a configuration class'),
    ('rl_jax.serialization.json', 'not a configuration class'),
    ('rl_jax.config.RolloutConfigg', 'RolloutConfigg'),
    ('rl_jax.nowhere.RolloutConfig', 'rl_jax.nowhere'),
  ],
)
def test_only_configuration_classes_are_built(path, message):
  """A file from elsewhere cannot call anything."""
  with pytest.raises(ValueError, match=message):
    from_json(json.dumps({'class': path}))


def test_an_unknown_field_names_the_nearest():
  """As in a file that an older version wrote."""
  text = to_json(bandit.get_config(REINFORCE)).replace(
    '"group_size"', '"group_sizes"'
  )
  with pytest.raises(ValueError, match="'group_sizes'.*mean 'group_size'"):
    from_json(text)


def test_values_out_of_range_are_refused_on_reading_too():
  """A file is checked like a flag."""
  text = to_json(bandit.get_config(REINFORCE)).replace(
    '"group_size": 8', '"group_size": 0'
  )
  with pytest.raises(ValueError, match='group_size = 0'):
    from_json(text)


def test_what_json_cannot_hold_is_named():
  """An array is no configuration."""
  method = REINFORCE.as_arrays()
  method = dataclasses.replace(method, losses=(losses.PPOClip().replace(),))
  to_json(method)
  method = Method(losses=(losses.PPOClip(),)).as_arrays()
  with pytest.raises(TypeError, match='cannot write ArrayImpl as JSON'):
    to_json(method)


def test_difference_names_path_and_both_values(toy):
  """One line per field, also below pieces; pieces of another kind whole."""
  grpo = bandit.get_config(toy.get_method('grpo'))
  other = override(grpo, 'rollout.group_size', '4')
  other = override(other, 'method.losses.PPOClip.clip_high', '0.28')
  assert difference(grpo, other) == [
    'method.losses.0.clip_high: 0.2 -> 0.28',
    'rollout.group_size: 8 -> 4',
  ]
  (line,) = difference(
    override(grpo, 'method.losses.1', 'null').method.losses,
    grpo.method.losses,
    'losses',
  )
  assert line.startswith('losses: (PPOClip(') and 'KLPenalty(' in line
