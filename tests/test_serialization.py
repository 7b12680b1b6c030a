"""Configurations survive JSON, and only configuration classes come back."""

import dataclasses
import json
import pathlib
import shutil
import sys
import types
import typing

import pytest

from configs.worlds import arithmetic, arithmetic_tiny, bandit
from experiments.flags import configuration
from rl_jax import serialization
from rl_jax.decoding.drafts.settings import DraftModel
from rl_jax.method import Method
from rl_jax.models.files import model_dir
from rl_jax.overrides import override
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.runs import directory
from rl_jax.serialization import (
  check,
  difference,
  digest,
  from_json,
  history,
  known_classes,
  to_json,
)
from rl_jax.tasks import Described
from rl_jax.worlds import Arithmetic, Bandit

GOLDEN = pathlib.Path(__file__).parent / 'golden'
CONFIGS = configuration.names('configs')
REINFORCE = Method(losses=(losses.Reinforce(),), aggregation=TokenMean())


def survives_json(toy, name, method):
  config = configuration.load_config(name, toy.get_method(method))
  text = to_json(config)
  again = from_json(text)
  assert again == config, method
  assert to_json(again) == text, method
  assert difference(config, again) == [], method


@pytest.mark.parametrize('number', range(len(CONFIGS)))
def test_every_configuration_and_every_method_survive_json(toy, number):
  """E0: equal after a round trip, with equal text the second time."""
  for method in toy.method_names()[number :: len(CONFIGS)]:
    survives_json(toy, CONFIGS[number], method)


@pytest.mark.slow
@pytest.mark.parametrize('name', CONFIGS)
def test_every_configuration_with_every_method_survives_json(toy, name):
  """E0: all pairs of the test above."""
  for method in toy.method_names():
    survives_json(toy, name, method)


def test_renamed_classes_are_read():
  """Older files name them by role, or by their module path."""
  fields = {'class': 'tasks.DescribedBandit', 'num_contexts': 3}
  assert from_json(json.dumps(fields)) == Described(Bandit(num_contexts=3))
  path = 'rl_jax.tasks.described_arithmetic.DescribedArithmetic'
  weights = {'class': 'dict', 'items': {'outcome': 2.0}}
  fields = {'class': path, 'digits': 1, 'reward_weights': weights}
  task = Described(Arithmetic(digits=1, reward_weights={'outcome': 2.0}))
  assert from_json(json.dumps(fields)) == task


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
    ('subprocess.Popen', "no configuration class 'Popen'"),
    ('os.system', "no configuration class 'system'"),
    ('rl_jax.overrides.parse_piece', "no configuration class 'parse_piece'"),
    ('rl_jax.serialization.json', "no configuration class 'json'"),
    ('config.RolloutConfigg', "Did you mean 'RolloutConfig'"),
    (3, "refusing to build '3'"),
  ],
)
def test_only_configuration_classes_are_built(path, message):
  """A file from elsewhere cannot call anything."""
  with pytest.raises(ValueError, match=message):
    from_json(json.dumps({'class': path}))


def test_nothing_is_imported_because_a_file_names_it():
  """Not even a module of this project."""
  sys.modules.pop('configs.gsm8k', None)
  with pytest.raises(ValueError, match='refusing to build'):
    from_json('{"class": "configs.gsm8k.get_config"}')
  assert 'configs.gsm8k' not in sys.modules


def test_classes_are_written_by_role_and_read_by_their_last_word(toy):
  """Roles are folders; of credit/, what shapes rewards is shaping."""
  config = bandit.get_config(toy.get_method('ppo_max'))
  text = to_json(config)
  for name in (
    'config.ExperimentConfig',
    'method.Method',
    'worlds.Bandit',
    'shaping.KLInReward',
    'credit.GAE',
    'credit.LambdaReturn',
    'losses.PPOClip',
    'aggregation.TokenMean',
  ):
    assert f'"class": "{name}"' in text
  assert 'rl_jax' not in text
  for role in ('"rl_jax.losses.ppo_clip.', '"elsewhere.', '"'):
    assert from_json(text.replace('"losses.', role)) == config


def test_names_of_classes_are_unique():
  """Else known_classes raises; a class that moved into two modules is one."""
  assert len(known_classes()) > 100
  module = types.ModuleType('configs.taken')
  module.Own = type('PPOClip', (losses.PPOClip,), {})
  sys.modules[module.__name__] = module
  try:
    with pytest.raises(ValueError, match="are named 'PPOClip'"):
      known_classes()
  finally:
    del sys.modules[module.__name__]


def test_whatever_a_known_class_holds_is_known_too():
  """RopeScaling of ModelConfig, Limits of PythonFunction."""
  known, inside = known_classes(), set()
  for cls in known.values():
    for hint in typing.get_type_hints(cls).values():
      parts = typing.get_args(hint) or (hint,)
      inside |= {part for part in parts if dataclasses.is_dataclass(part)}
  assert {'RopeScaling', 'Limits'} <= {cls.__name__ for cls in inside}
  assert inside <= set(known.values())


BEFORE = {
  'experiment_before_rooms': (
    'ppo_max',
    ('model.value_head=true', 'rollout.group_size=4', 'iterations=2'),
    (),
  ),
  'experiment_before_rooms_lora': (
    'clip_cov',
    ('model.lora_rank=4', 'iterations=2'),
    ('method.losses=EntropyBonus(coef=0.01)',),
  ),
}


@pytest.mark.parametrize('name', BEFORE)
def test_runs_that_were_begun_before_roles_are_continued(name, tmp_path):
  """Files of real runs, with module paths that need not exist any more."""
  method, sets, adds = BEFORE[name]
  # Written is what 'auto' meant on the CPU that began the run, and what were
  # the defaults then.
  own = ('verifier.num_workers=0', 'mesh.data=1')
  sets = (*sets, *own, 'model.compute_dtype=float32')
  config = configuration.build('bandit', method, sets, adds)
  text = (GOLDEN / f'{name}.json').read_text()
  assert '"rl_jax.losses.ppo_clip.PPOClip"' in text
  assert from_json(text) == config
  (tmp_path / 'experiment.json').write_text(text)
  directory.check(config, str(tmp_path))
  with pytest.raises(ValueError, match='optimizer.learning_rate: 0.01 -> 0.5'):
    directory.check(
      override(config, 'optimizer.learning_rate', '0.5'), str(tmp_path)
    )


def test_a_model_that_was_saved_before_roles_is_read(tmp_path):
  """model.json of a warm start of configs/worlds/arithmetic_tiny.py."""
  shutil.copy(GOLDEN / 'model_before_rooms.json', tmp_path / 'model.json')
  config = arithmetic_tiny.get_config(REINFORCE).model.config
  assert model_dir.read_config(str(tmp_path)) == dataclasses.replace(
    config, vocab_size=15, compute_dtype='float32', attention='plain'
  )


def _class(name, module='rl_jax.here', **fields):
  """A frozen dataclass with defaults."""
  return dataclasses.make_dataclass(
    name,
    [(key, object, value) for key, value in fields.items()],
    frozen=True,
    namespace={'__module__': module},
  )


def test_the_digest_is_of_what_differs_from_the_defaults():
  """New fields, other modules and the order of fields do not change it."""
  inner = _class('Inner', x=1)
  outer = _class('Outer', part=inner(), rate=0.1, names=('a',))
  known = digest(outer(rate=0.2, part=inner(x=2)))
  wider = _class('Inner', 'rl_jax.there', y=None, x=1, z=())
  longer = _class(
    'Outer', 'elsewhere', new=3, rate=0.1, part=wider(), names=('a',)
  )
  assert digest(longer(rate=0.2, part=wider(x=2))) == known
  assert digest(longer()) == digest(outer())
  for other in (
    longer(rate=0.2),
    longer(part=wider(x=2)),
    longer(rate=0.3, part=wider(x=2)),
    longer(rate=0.2, part=wider(x=2), new=4),
    longer(rate=0.2, part=wider(x=2), names=()),
    _class('Other', rate=0.1, part=inner())(rate=0.2, part=inner(x=2)),
  ):
    assert digest(other) != known


def test_a_default_that_is_given_in_full_is_none_to_the_digest():
  """The default of the field is compared, not that of its class."""
  inner = _class('Inner', x=1)
  outer = _class('Outer', part=inner(x=2))
  assert digest(outer(part=inner(x=2))) == digest(outer())
  assert digest(outer(part=inner())) != digest(outer())


def test_digest_of_a_known_run():
  """Golden: a change here orphans every committed result."""
  text = (GOLDEN / 'experiment_before_rooms.json').read_text()
  assert digest(from_json(text)) == '4e74ab46e7c4'


def test_drafts_of_earlier_runs_are_coupled_as_they_were():
  """A file without the field means 'uniform', whatever is the default now."""
  drafts = DraftModel(path='runs/small')
  text = to_json(drafts)
  assert from_json(text) == drafts and drafts.coupling == 'rejection'
  fields = json.loads(text)
  del fields['coupling']
  old = from_json(json.dumps(fields))
  assert old == dataclasses.replace(drafts, coupling='uniform')


def test_an_unknown_field_names_the_nearest():
  """A file of an older version may hold one."""
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
  """An array is not a configuration."""
  method = REINFORCE.as_arrays()
  method = dataclasses.replace(method, losses=(losses.PPOClip().replace(),))
  to_json(method)
  method = Method(losses=(losses.PPOClip(),)).as_arrays()
  with pytest.raises(TypeError, match='cannot write ArrayImpl as JSON'):
    to_json(method)


def test_a_class_in_place_of_an_object_is_named(toy):
  """Not a field of the class `type`."""
  config = bandit.get_config(toy.get_method('grpo'))
  config = dataclasses.replace(config, task=Bandit)
  with pytest.raises(
    ValueError, match=r'task: Bandit is a class: write Bandit'
  ):
    serialization.check(config)


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


@pytest.mark.parametrize(
  'found',
  [3, {'a': 1}, [3], [{}], [{'iteration': 1.5, 'changes': []}]]
  + [[{'iteration': 1, 'changes': 'seed: 0 -> 1'}]],
)
def test_a_damaged_history_is_an_error(found):
  """Not after an iteration, when it is written again."""
  with pytest.raises(ValueError, match='history is not a list of changes'):
    history(json.dumps({'history': found}))


@pytest.mark.parametrize(
  ('written', 'wrong', 'message'),
  [
    ('"on_device": false', '"on_device": "no"', "bool, got 'no'"),
    ('"stop": []', '"stop": "abc"', "tuple, got 'abc'"),
    ('"group_size": 8', '"group_size": "8"', 'group_size: expected int, got'),
  ],
)
def test_values_of_another_type_are_refused(written, wrong, message):
  """Values of a file are not converted: "no" would be true."""
  text = to_json(bandit.get_config(REINFORCE))
  assert written in text
  with pytest.raises(ValueError, match=message):
    check(from_json(text.replace(written, wrong)))
