"""Scorers of reasoning-gym: what they see, and what they pay for."""

import collections
import importlib.util
import pathlib
import sys

import pytest

from rl_jax.tasks import ReasoningGym, gym_scores
from rl_jax.tasks.base import OUTCOME
from rl_jax.verification import sandbox
from rl_jax.verification.pool import VerifierPool

reasoning_gym = pytest.importorskip(
  'reasoning_gym', reason="needs the extra 'tasks'"
)
from reasoning_gym.factory import DATASETS  # noqa: E402

# Data of arc_agi are left open by a package that reads them.
pytestmark = pytest.mark.filterwarnings(
  'ignore::pytest.PytestUnraisableExceptionWarning'
)
PATH = pathlib.Path(__file__).parents[1] / 'tools' / 'attack_scorers.py'
SPEC = importlib.util.spec_from_file_location('attack_scorers', PATH)
attacks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(attacks)
task_of, answered = attacks.task_of, attacks.answered
GENERATORS = sorted(set(DATASETS) - {'composite'})
# Quick to make, and of every kind: their scorers run answers, count as far as
# the answer says, raise, or pay for anything.
FEW = (
  *('binary_matrix', 'spiral_matrix', 'n_queens', 'string_insertion'),
  *('countdown', 'polynomial_multiplication', 'simple_integration'),
  *('coin_flip', 'complex_arithmetic', 'game_of_life_halting', 'codeio'),
  *('prime_factorization', 'boxnet', 'game_of_life', 'time_intervals'),
  *('propositional_logic', 'rush_hour', 'rubiks_cube', 'number_sorting'),
  *('calendar_arithmetic', 'decimal_arithmetic', 'word_sorting', 'ab'),
  *('leg_counting', 'gsm_symbolic', 'polynomial_equations', 'bf'),
)


def halves(answer):
  """The first half of a right answer, and that with other words after it."""
  half = answer[: len(answer) // 2]
  return (half, f'{half} xyzzy plugh') if len(half) > 1 else ()


MORE = sorted(set(GENERATORS) - set(FEW))


def test_nonsense_and_code_is_wrong(tmp_path):
  """Judged, in time, and nothing runs."""
  assert attacks.attack(FEW, str(tmp_path / 'made')) == {}


@pytest.mark.slow
def test_nonsense_and_code_is_wrong_in_all_generators(tmp_path):
  assert attacks.attack(MORE, str(tmp_path / 'made')) == {}


# Half may be right: '5 d' is five days, and three decimals are asked for.
READ_IN_PART = {'time_intervals', 'decimal_arithmetic', 'power_function'}


def test_half_of_a_right_answer_is_wrong():
  few = sorted(set(FEW) - READ_IN_PART)
  assert attacks.not_wrong(few, halves) == {}


@pytest.mark.slow
def test_half_of_a_right_answer_is_wrong_in_all_generators():
  more = sorted(set(MORE) - READ_IN_PART)
  assert attacks.not_wrong(more, halves) == {}


def check_targets(generator, count):
  task = ReasoningGym(generator=generator, num_train=count)
  bad = []
  for index in range(count):
    example = task.example('train', index)
    try:
      target = task.target(example)
    except ValueError as error:
      assert generator in ('boxnet', 'rush_hour') and 'no right' in str(error)
      continue
    assert 'None' not in target
    if task.reward(example, target)[OUTCOME] != 1.0:
      bad.append(target)
  assert not bad


@pytest.mark.parametrize('generator', FEW)
def test_targets_are_right(generator):
  check_targets(generator, 5)


@pytest.mark.slow
@pytest.mark.parametrize('generator', GENERATORS)
def test_targets_are_right_in_all_generators(generator):
  slow = generator in ('futoshiki', 'knight_swap', 'zebra_puzzles', 'puzzle24')
  check_targets(generator, 5 if slow else 40)


@pytest.mark.parametrize(
  ('generator', 'entry', 'answer', 'score'),
  [
    ('coin_flip', {'answer': '0.3125'}, '0.3125', 1.0),
    ('coin_flip', {'answer': '0.3125'}, '5/16', 1.0),
    ('coin_flip', {'answer': '0.3125'}, '0.31251', 1.0),
    ('coin_flip', {'answer': '0.3125'}, '0.3', 0.0),
    ('coin_flip', {'answer': '0.3125'}, '0', 0.0),
    ('coin_flip', {'answer': '3.051757812e-05'}, '0', 0.0),
    ('coin_flip', {'answer': '3.051757812e-05'}, '0.00003051', 1.0),
    ('coin_flip', {'answer': '1'}, '10', 0.0),
    ('coin_flip', {'answer': '1'}, '1.0', 1.0),
    ('coin_flip', {'answer': '1'}, 'one', None),
    ('game_of_life_halting', {'answer': 'True'}, 'true', 1.0),
    ('game_of_life_halting', {'answer': 'True'}, 'False', 0.0),
    ('game_of_life_halting', {'answer': 'False'}, 'False', 1.0),
    ('game_of_life_halting', {'answer': 'False'}, 'anything', 0.0),
    ('decimal_arithmetic', {'answer': '0.0003'}, '0', 0.0),
    ('decimal_arithmetic', {'answer': '0.0003'}, '0.0003', 1.0),
    ('decimal_arithmetic', {'answer': '2.5003'}, '2.5', 1.0),
    ('decimal_arithmetic', {'answer': '0'}, '0.0', 1.0),
    ('decimal_arithmetic', {'answer': '0'}, '0.0001', 0.0),
    ('gsm_symbolic', {'answer': '1280'}, '1,280 legs', 1.0),
    ('gsm_symbolic', {'answer': '1280'}, '-1280', 0.01),
    ('polynomial_equations', {'answer': ''}, 'none', 1.0),
    ('polynomial_equations', {'answer': ''}, 'xyzzy', 0.0),
    ('polynomial_equations', {'answer': '0.5'}, '0.5', 1.0),
  ],
)
def test_scores_by_hand(generator, entry, answer, score):
  dataset = task_of(generator)._dataset()
  entry = {**dataset[0], **entry}
  assert gym_scores.score(generator, dataset, answer, entry) == score


@pytest.mark.parametrize(
  ('generator', 'metadata', 'answer', 'score'),
  [
    ('countdown', {'numbers': [3, 5, 7], 'target': 8}, '7 * 5 - 3', 0.05),
    ('countdown', {'numbers': [3, 5, 7], 'target': 32}, '7 * 5 - 3', 1.0),
    ('countdown', {'numbers': [3, 5, 7], 'target': 32}, '-3 + 7 * 5', 1.0),
    ('countdown', {'numbers': [3, 5, 7], 'target': 35}, '7 * 5', 0.05),
    ('countdown', {'numbers': [3, 2], 'target': 9}, '3 ** 2', None),
    ('countdown', {'numbers': [3, 2], 'target': 9}, 'seven', None),
    ('puzzle24', {'numbers': [6, 4, 1, 1]}, '6 * 4 * 1 * 1', 1.0),
    ('puzzle24', {'numbers': [8, 3, 2, 2]}, '6 * 4 * 1 * 1', 0.05),
    ('puzzle24', {'numbers': [8, 3, 2, 2]}, '8 * 3 + 2 / 2', 0.05),
    ('number_sorting', {'sorted_numbers': ['1.0', '2.0']}, '[1, 2]', 1.0),
    ('number_sorting', {'sorted_numbers': ['1.0', '2.0']}, "['1', '2']", 1.0),
    ('number_sorting', {'sorted_numbers': ['1.0', '2.0']}, '[1, 2.9]', 0.0),
  ],
)
def test_numbers_must_be_the_given_ones(generator, metadata, answer, score):
  entry = {'answer': '', 'metadata': metadata}
  assert gym_scores.score(generator, None, answer, entry) == score


@pytest.mark.parametrize(
  ('generator', 'added'),
  [
    ('word_sorting', ', xyzzy'),
    ('letter_jumble', ' xyzzy'),
    ('spell_backward', 'xyzzy'),
    ('figlet_font', 'xyzzy'),
  ],
)
def test_what_follows_a_right_answer_is_wrong(generator, added):
  options = {'min_word_len': 12, 'max_word_len': 14}
  options = options if generator == 'figlet_font' else {}
  task = ReasoningGym(generator=generator, options=options, num_train=9)
  for index in range(9):
    example = task.example('train', index)
    assert task.reward(example, answered(example.answer))[OUTCOME] == 1.0
    longer = task.reward(example, answered(example.answer + added))
    assert longer[OUTCOME] == 0.0 and longer['format'] == 1.0


@pytest.mark.parametrize(
  'returned', [float('nan'), 2.0, -0.5, float('inf'), 'one', None, [1.0]]
)
def test_what_a_scorer_returns_is_checked(monkeypatch, returned):
  """Wrong, and not well formed; a bit above 1 is rounding."""
  task = task_of('leg_counting')
  example = task.example('train', 0)
  kind = type(task._dataset())
  monkeypatch.setattr(kind, 'score_answer', lambda *_: returned)
  expected = {'outcome': 0.0, 'format': 0.0, 'score': 0.0}
  assert task.reward(example, answered('4')) == expected
  monkeypatch.setattr(kind, 'score_answer', lambda *_: 1.0 + 1e-12)
  score = gym_scores.score('leg_counting', task._dataset(), '4', {'answer': ''})
  assert score == 1.0


def test_a_scorer_that_raises_makes_the_answer_wrong():
  for generator in ('prime_factorization', 'boxnet', 'time_intervals'):
    task = task_of(generator)
    for text in ('7 and 9', '[1]', '9' * 400):
      found = task.reward(task.example('train', 0), answered(text))
      assert found[OUTCOME] == 0.0


def test_a_right_answer_that_is_not_right_is_an_error_at_start(monkeypatch):
  task = task_of('leg_counting')
  task.prepare()
  kind = type(task._dataset())
  monkeypatch.setattr(kind, 'score_answer', lambda *_: 0.5)
  with pytest.raises(RuntimeError, match="'leg_counting'.* has the score 0.5"):
    task.prepare()
  monkeypatch.delattr(kind, 'score_answer')
  monkeypatch.setattr(kind, 'score_answer', lambda *_: 1 / 0, raising=False)
  with pytest.raises(RuntimeError, match="'leg_counting'.* cannot be read"):
    task.prepare()


def test_generators_without_an_answer_have_no_target():
  """Others take it from the metadata; an integral is computed."""
  for generator in ('boxnet', 'rush_hour'):
    task = task_of(generator)
    task.prepare()
    example = task.example('train', 0)
    assert example.answer == ''
    with pytest.raises(ValueError, match=f'{generator}.* no right answer'):
      task.target(example)
  entry = {
    'answer': '2*Integral(x*sin(2*x), x) + C',
    'metadata': {'integrand': '2*x*sin(2*x)', 'variable': 'x'},
  }
  found = gym_scores.right_answer('intermediate_integration', entry)
  score = gym_scores.score('intermediate_integration', None, found, entry)
  assert score == 1.0 and 'Integral' not in found
  with pytest.raises(ValueError, match='tasks.Mixture'):
    task_of('composite').prepare()


def test_what_runs_texts_is_known():
  """All of the installed package: a new scorer of this kind fails here."""
  known = gym_scores.GRAMMARS.keys() | gym_scores._OWN.keys()
  both = known | gym_scores.ONLY_PROBLEMS
  found = {
    name: gym_scores.runs_text(kind) for name, (kind, _) in DATASETS.items()
  }
  found = {name: what for name, what in found.items() if what}
  assert set(found) <= both and len(found) >= 15
  # Of helpers: modules without a generator run no answers.
  own = {sys.modules[kind.__module__].__file__ for kind, _ in DATASETS.values()}
  root = pathlib.Path(reasoning_gym.__file__).parent
  helpers = collections.Counter(
    str(path.relative_to(root))
    for path in root.rglob('*.py')
    if str(path) not in own
    and gym_scores._RUNS.search(path.read_text(encoding='utf-8'))
  )
  assert set(helpers) <= {
    'arithmetic/gsm_symbolic/generators_00_49.py',  # their own fractions
    'arithmetic/gsm_symbolic/generators_50_99.py',
    'code/contrib/bfit/BF-it.py',  # a compiler of brainfuck
    'code/contrib/bfit/Compiler/Compiler.py',
  }


def test_an_unknown_scorer_that_could_run_answers_is_refused(monkeypatch):
  monkeypatch.delitem(gym_scores.GRAMMARS, 'n_queens')
  with pytest.raises(ValueError, match=r"'n_queens' has \['eval\('\]"):
    gym_scores.check_known('n_queens', task_of('n_queens')._dataset())


@pytest.mark.slow
@pytest.mark.parametrize('generator', GENERATORS)
def test_no_answer_is_right_nowhere(generator):
  check_no_answer(generator)


@pytest.mark.parametrize('generator', FEW)
def test_no_answer_is_wrong(generator):
  check_no_answer(generator)


def check_no_answer(generator):
  """Else runs would end without a reason."""
  dataset = task_of(generator)._dataset()
  for index in range(3):
    found = gym_scores.unchecked(
      generator, dataset, 'no answer', dataset[index]
    )
    assert found is None or found < 0.9


class Patched(ReasoningGym):
  """A response that changes the scorer of its process, whatever the way."""

  def reward(self, example, response):
    """Acts like a hole in a grammar."""
    if response == 'patch':
      type(self._dataset()).score_answer = lambda *_: 1.0
    return super().reward(example, response)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_a_changed_scorer_ends_the_run(monkeypatch, num_workers):
  """At the latest after 64 calls of a process."""
  task = Patched(generator='leg_counting', num_train=4)
  kind = type(task._dataset())
  monkeypatch.setattr(kind, 'score_answer', kind.score_answer)  # put back
  examples = [task.example('train', n % 4) for n in range(400)]
  texts = [answered('-1')] * 400
  with VerifierPool(task, num_workers, timeout_seconds=60.0) as pool:
    found = pool.reward(examples, texts)
    assert {o.components[OUTCOME] for o in found} == {0.0}
    texts[:: 400 // 20] = ['patch'] * 20
    with pytest.raises(sandbox.BreachError, match="'no answer' for a right"):
      pool.reward(examples, texts)
