"""Changes from the command line: strict, and nothing is evaluated."""

import dataclasses
import itertools
import re
from typing import Any

import pytest

from configs.methods import grpo
from configs.worlds import bandit
from rl_jax.episodes import turns
from rl_jax.episodes.turns import TurnConfig
from rl_jax.method import Method
from rl_jax.overrides import (
  FOREIGN,
  add_piece,
  nearest,
  override,
  override_all,
  parse_literal,
  parse_piece,
)
from rl_jax.pieces import credit, losses, regularizers, selection, weights
from rl_jax.pieces.aggregation import SeqMeanTokenMean
from rl_jax.tasks import EvaluationSet
from rl_jax.worlds import KeyDoor


@dataclasses.dataclass(frozen=True)
class Inner:
  """Fields of every type that a configuration has."""

  rate: float = 0.5
  count: int = 3
  flag: bool = False
  name: str = 'plain'
  limit: float | None = 1.0
  steps: int | None = None
  names: tuple[str, ...] = ('a',)
  anything: Any = 1.5


@dataclasses.dataclass(frozen=True)
class Outer:
  """One level above."""

  inner: Inner = Inner()


def method():
  """GRPO with the same loss twice."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(
      losses.PPOClip(),
      regularizers.KLPenalty(coef=0.1),
      regularizers.KLPenalty(coef=0.2),
    ),
    aggregation=SeqMeanTokenMean(),
    group_filter=selection.ZeroVariance(),
  )


def config():
  """The bandit with that method."""
  return bandit.get_config(method())


def inner(path, text):
  """The Inner after one override below `inner.`."""
  return override(Outer(), f'inner.{path}', text).inner


@pytest.mark.parametrize(
  ('field', 'text', 'value'),
  [
    ('rate', '2.5', 2.5),
    ('rate', '1e-3', 1e-3),
    ('rate', '2', 2.0),  # an int becomes the float that the field is
    ('count', '7', 7),
    ('flag', 'true', True),
    ('flag', 'True', True),
    ('name', 'skip', 'skip'),
    ('name', "'skip'", 'skip'),
    ('limit', 'null', None),
    ('limit', '3', 3.0),
    ('steps', '3', 3),
    ('steps', 'None', None),
    ('names', "('x', 'y')", ('x', 'y')),
    ('names', "['x', 'y']", ('x', 'y')),  # hashable: a list becomes a tuple
    ('anything', '2', 2.0),
  ],
)
def test_a_literal_of_the_right_type_is_set(field, text, value):
  """The value, and its exact type."""
  found = getattr(inner(field, text), field)
  assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
  ('field', 'text', 'message'),
  [
    ('count', '9' * 20, r'inner.count: 9+ has more than 64 bits'),
    ('rate', 'fast', r"inner.rate: expected float, got 'fast' \(str\)"),
    ('rate', 'true', r'expected float, got True \(bool\)'),
    ('rate', 'null', r'expected float, got None'),
    ('count', '2.5', r'expected int, got 2.5 \(float\)'),
    ('count', 'false', r'expected int, got False \(bool\)'),
    ('flag', '1', r'expected bool, got 1 \(int\)'),
    ('name', '3', r'expected str, got 3 \(int\)'),
    ('limit', 'none', r"expected float or NoneType, got 'none'"),
    ('steps', '2.0', r'expected int or NoneType, got 2.0'),
    ('names', 'x', r"expected tuple, got 'x'"),
    ('anything', 'word', r"expected float, got 'word'"),
  ],
)
def test_a_wrong_type_is_refused(field, text, message):
  """The path, the expected type and what was given are named."""
  with pytest.raises(ValueError, match=message):
    inner(field, text)


def test_an_unknown_path_names_the_nearest_and_the_known():
  """A typing error costs one line, not a run."""
  with pytest.raises(ValueError, match="'optimiser'.*mean 'optimizer'") as e:
    override(config(), 'optimiser.learning_rate', '1')
  assert 'rollout' in str(e.value) and 'seed' in str(e.value)
  with pytest.raises(ValueError, match="'group_sise'.*mean 'group_size'"):
    override(config(), 'rollout.group_sise', '4')
  with pytest.raises(ValueError, match="'PPOClipp'.*mean 'PPOClip'"):
    override(config(), 'method.losses.PPOClipp.clip_low', '0.1')
  with pytest.raises(ValueError, match="'clip_hi'.*mean 'clip_high'"):
    override(config(), 'method.losses.PPOClip.clip_hi', '0.1')


def test_a_path_below_a_plain_value_is_refused():
  """A number has no fields."""
  with pytest.raises(ValueError, match="'b' lies below a plain value"):
    override(config(), 'seed.b', '1')


def test_a_path_below_a_dict_names_the_field_to_set():
  """Keys of data are not fields."""
  message = r'set the whole: task.reward_weights=\{...\}'
  with pytest.raises(ValueError, match=message):
    override(config(), 'task.reward_weights.outcome', '2')


def test_pieces_are_named_by_class_or_index():
  """Other pieces and the given configuration stay as they are."""
  before = config()
  after = override(before, 'method.losses.PPOClip.clip_high', '0.28')
  assert after.method.losses[0] == losses.PPOClip(clip_high=0.28)
  assert after.method.losses[1:] == before.method.losses[1:]
  assert before.method.losses[0] == losses.PPOClip()
  after = override(before, 'method.losses.2.coef', '0.5')
  assert [x.coef for x in after.method.losses[1:]] == [0.1, 0.5]
  after = override(before, 'method.losses.-1.coef', '0.5')
  assert [x.coef for x in after.method.losses[1:]] == [0.1, 0.5]


def test_a_class_that_occurs_twice_needs_an_index():
  """The meaning is never guessed."""
  with pytest.raises(ValueError, match='KLPenalty occurs 2 times; use an ind'):
    override(config(), 'method.losses.KLPenalty.coef', '0.5')
  with pytest.raises(ValueError, match='index 3 outside 0..2'):
    override(config(), 'method.losses.3.coef', '0.5')


def test_null_removes_an_optional_piece():
  """From a slot, and from a tuple."""
  after = override(config(), 'method.group_filter', 'null')
  assert after.method.group_filter is None
  after = override(config(), 'method.losses.1', 'null')
  assert after.method.losses == (
    losses.PPOClip(),
    regularizers.KLPenalty(coef=0.2),
  )
  after = override(config(), 'method.credit.GroupScale', 'null')
  assert after.method.credit == (credit.GroupCenter(),)


def test_a_piece_is_replaced_by_a_constructor_call():
  """In a slot, in a tuple, and where there was none."""
  call = 'TokenMean()'
  after = override(config(), 'method.aggregation', call)
  assert type(after.method.aggregation).__name__ == 'TokenMean'
  after = override(config(), 'method.losses.0', 'PPOClip(clip_high=0.3)')
  assert after.method.losses[0] == losses.PPOClip(clip_high=0.3)
  after = override(config(), 'method.selector', 'Uniform()')
  assert after.method.selector == selection.Uniform()


@pytest.mark.parametrize(
  ('path', 'text'),
  [
    ('method.aggregation', '3'),
    ('method.aggregation', 'TokenMean'),
    ('method.group_filter', 'zero_variance'),
    ('method.selector', 'Uniform'),
    ('method.losses.0', '0.3'),
    ('method.losses', '(1, 2)'),
    ('method', 'grpo'),
    ('task', '5'),
  ],
)
def test_a_plain_value_is_no_piece(path, text):
  """It would otherwise fail in the middle of tracing."""
  with pytest.raises(ValueError, match=f'{path}: expected'):
    override(config(), path, text)


def test_add_appends_a_piece():
  """The end of the tuple, with the fields given."""
  after = add_piece(config(), 'method.weights', 'ClipCovDrop(fraction=1e-3)')
  assert after.method.weights == (weights.ClipCovDrop(fraction=1e-3),)
  after = add_piece(after, 'method.losses', 'EntropyBonus()')
  assert after.method.losses[3] == regularizers.EntropyBonus()
  with pytest.raises(ValueError, match='seed is not a tuple'):
    add_piece(config(), 'seed', 'ClipCovDrop()')


def test_limits_of_episodes_are_given_by_their_class():
  """The class is the one that the error names where limits are missing."""
  with pytest.raises(ValueError, match='rollout.turns is missing') as error:
    turns.check(KeyDoor(), config().rollout, config().method)
  text = re.search("--set='(rollout.turns)=(.*)'", str(error.value))
  assert override(config(), *text.groups()).rollout.turns == TurnConfig()


@pytest.mark.parametrize('form', ['({},)', '[{}]', '({}, )'])
def test_a_tuple_of_pieces_is_set(form):
  """The form of --set='method.losses=(PPOClip(clip_high=0.3),)'."""
  text = form.format('PPOClip(clip_high=0.3)')
  after = override(config(), 'method.losses', text)
  assert after.method.losses == (losses.PPOClip(clip_high=0.3),)
  text = form.format("EvaluationSet(name='a', split='test')")
  after = override(config(), 'evaluation.sets', text)
  assert after.evaluation.sets == (EvaluationSet(name='a', split='test'),)


@pytest.mark.parametrize('text', ['(see (1) here)', '[a', '(a)', '(a, b)'])
def test_texts_in_brackets_stay_text(text):
  """Only calls are read as pieces."""
  assert parse_literal(text) == text


def test_pieces_in_a_tuple():
  """The parts of a mixture of data sets, for example."""
  part = "MixturePart(name='{0}', task=PreferenceRows(path='{0}'), weight=2.0)"
  text = f'Mixture(parts=[{part.format("a")}, {part.format("b")}])'
  task = override(config(), 'task', text).task
  assert [part.task.path for part in task.parts] == ['a', 'b']
  assert task.parts[1].weight == 2.0
  with pytest.raises(ValueError, match='only literals and pieces'):
    override(config(), 'task', 'Mixture(parts=(MixturePart, 1 + 1))')


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ("__import__('os')", 'name every field'),
    ("ClipCovDrop(fraction=open('x'))", 'name every field'),
    ('ClipCovDrop(fraction=open(file=3))', "unknown piece: 'open'.*--import="),
    ('ClipCovDrop(fraction=1 + 2)', 'only literals and pieces'),
    ('ClipCovDrop(fraction=x)', 'only literals and pieces'),
    ('ClipCovDrop(fraction=[i for i in (1,)])', 'only literals and pieces'),
    ('weights.ClipCovDrop(fraction=1e-3)', r'class only, ClipCovDrop\('),
    ('ClipCovDrop().fraction', 'only literals and pieces'),
    ('ClipCovDrop(1e-3)', 'name every field'),
    ('ClipCovDrop(**{})', 'name every field'),
    ('ClipCovDrop(', 'cannot read'),
    ('ClipCovDrop(fractoin=1e-3)', "'fractoin'.*mean 'fraction'"),
    ('ClipCowDrop()', "'ClipCowDrop'.*mean 'ClipCovDrop'"),
    ('ClipCovDrop(fraction=2.0)', 'fraction = 2.0 is outside'),
    ("ClipCovDrop(fraction='a')", r"fraction: expected float, got 'a' \(str\)"),
    ('Judge(path=7)', r'Judge.path: expected str, got 7 \(int\)'),
    (
      'Judge(labels=(1, 2))',
      r'labels: expected tuple\[str, ...\], got \(1, 2\)',
    ),
    ("Judge(criteria=('a',))", r'tuple\[tuple\[str, float\], ...\], got'),
    ('Judge(revision=3)', 'revision: expected Revision or NoneType, got 3'),
  ],
)
def test_add_evaluates_nothing(text, message):
  """Only named literals and pieces of this project get through."""
  with pytest.raises(ValueError, match=message):
    parse_piece(text)


@pytest.mark.parametrize(
  ('path', 'text'),
  [
    ('reward_models', 'RewardModel(path="x")'),
    ('judges', 'Judge()'),
    ('partners', 'Partner(path="x")'),
  ],
)
def test_models_of_a_run_are_added_by_name(path, text):
  """One of another kind is refused."""
  assert len(getattr(add_piece(config(), path, text), path)) == 1
  with pytest.raises(ValueError, match=rf'--add={path}: expected tuple\['):
    add_piece(config(), path, 'ClipCovDrop()')


def test_pieces_nest():
  """A loss may carry its own aggregation."""
  piece = parse_piece('PPOClip(aggregation=TokenMean())')
  assert type(piece.aggregation).__name__ == 'TokenMean'


def test_words_that_are_no_literals_stay_text():
  """A path or a name needs no quotes within the shell's quotes."""
  assert parse_literal('runs/warm-2') == 'runs/warm-2'
  assert parse_literal('false') is False and parse_literal('null') is None


@pytest.mark.parametrize(
  'changes',
  [
    # Two fields that are only valid together.
    {'task': 'Countdown()', 'task.min_numbers': '5', 'task.max_numbers': '6'},
    # A whole object, and a field below it.
    {
      'method.losses.PPOClip': 'PPOClip(clip_low=0.1)',
      'method.losses.0.clip_high': '0.5',
    },
    # A removal does not move what later indices mean.
    {
      'method.credit.0': 'null',
      'method.credit.1.eps': '0.5',
      'method.losses.1': 'null',
      'method.losses.2.coef': '0.7',
    },
  ],
)
def test_the_order_of_changes_does_not_matter(changes):
  """All orders give the same configuration."""
  first, *others = [
    override_all(config(), order)
    for order in itertools.permutations(changes.items())
  ]
  assert first != config()
  assert all(other == first for other in others)


def test_a_field_that_is_set_twice_is_named():
  """Also by two of its paths; equal values are allowed."""
  twice = [('method.losses.0.clip_low', '0.1')]
  twice.append(('method.losses.PPOClip.clip_low', '0.3'))
  for changes in (twice, twice[::-1]):
    with pytest.raises(ValueError, match='clip_low is set to 0.. and to 0..'):
      override_all(config(), changes)
  once = override_all(config(), twice[:1])
  assert override_all(config(), twice[:1] * 2) == once


@pytest.mark.parametrize('path', FOREIGN.values())
def test_names_of_other_libraries_lead_to_fields(path):
  """Each to one that a configuration of GRPO has."""
  value = bandit.get_config(grpo.get_method())
  for name in path.split('.'):
    if isinstance(value, tuple):
      (value,) = (x for x in value if type(x).__name__ == name)
    else:
      value = getattr(value, name)


@pytest.mark.parametrize(
  ('path', 'guess'),
  [
    ('num_generations', 'rollout.group_size'),
    ('group_size', 'rollout.group_size'),
    ('learning_rate', 'optimizer.learning_rate'),
    ('temperature', 'rollout.temperature'),
    ('rollout.num_generations', 'group_size'),
    ('optimizer.lr', 'learning_rate'),
    ('optimizer.learning_rat', 'learning_rate'),
  ],
)
def test_a_field_is_guessed_by_its_name(path, guess):
  """Without its section, and as other libraries call it."""
  with pytest.raises(ValueError, match=f'Did you mean {guess!r}'):
    override(config(), path, '1')


def test_letters_in_another_order_are_nearest():
  """And neither upper case counts."""
  known = ['gspo', 'grpo', 'gmpo']
  assert nearest('gpro', known) == " Did you mean 'grpo'?"
  assert nearest('GRPO', known) == " Did you mean 'grpo'?"


def test_an_unknown_piece_may_be_the_users(tmp_path, monkeypatch):
  """The import comes before a guess, with the file if it is here."""
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError) as error:
    parse_piece('GroupMedian()')
  text = (
    "unknown piece: 'GroupMedian'. If it is yours, import it with --import="
  )
  assert str(error.value).startswith(f'{text}FILE.py. Did you mean ')
  (tmp_path / 'mine.py').write_text('raise OSError\nclass GroupMedian:\n  pass')
  with pytest.raises(ValueError) as error:
    parse_piece('GroupMedian()')
  assert str(error.value).startswith(f'{text}mine.py. ')
