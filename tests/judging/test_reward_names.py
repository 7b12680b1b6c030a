"""A component that rewards lack is an error before anything compiles."""

import contextlib
import dataclasses
import json

import jax
import pytest

from configs.worlds import bandit
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import Mixture, MixturePart, QuestionAnswer, RewardFunctions
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Arithmetic

WRONG = {'outcom': 1.0}
REFUSED = "reward_weights names \\['outcom'\\], but the components are \\["
calls = []


def noted(example, response):
  """A reward function of a user."""
  del example
  calls.append(response)
  return 0.0


def noted_list(completions, **kwargs):
  """One of TRL's form."""
  calls.extend(completions)
  return [0.0]


def of_turns(completions, **kwargs):
  """One for conversations, which says so only when it is called."""
  return [float(len(completion[0]['content'])) for completion in completions]


def never(completions, **kwargs):
  """One for rows of another kind."""
  return [None for _ in completions]


def with_column(completions, level, **kwargs):
  return [float(x) for x in level]


@pytest.fixture
def begin(toy):
  """Makes the verifier of the bandit with another task, without workers."""
  config = bandit.get_config(toy.get_method('grpo'))
  tokenizer = policy_lib.task_tokenizer(config.task)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])

  def make(task=None, split='train', **verifier):
    settings = VerifierConfig(**({'num_workers': 0} | verifier))
    changed = dataclasses.replace(
      config, task=task or config.task, verifier=settings
    )
    found = assembly.make_runner(changed, None, tokenizer, mesh, split=split)
    with contextlib.closing(found):
      pass

  make.task = config.task
  return make


def test_functions_of_the_user_are_not_called(begin):
  """Weights of the task that they add to are checked by the task only."""
  calls.clear()
  begin(RewardFunctions(task=Arithmetic(), functions={noted: 1.0}))
  task = Arithmetic(reward_weights=WRONG)
  with pytest.raises(ValueError, match=f'Arithmetic: {REFUSED}'):
    begin(RewardFunctions(task=task, functions={noted: 1.0}))
  assert not calls


def test_functions_in_other_forms_are_called_once(begin):
  """With a right response; a row to which none applies is not a mistake."""
  calls.clear()
  task = RewardFunctions(task=Arithmetic(), functions={noted_list: 1.0})
  begin(task)
  assert calls == [task.target(task.example('train', 0))]
  begin(RewardFunctions(task=Arithmetic(), functions={never: 1.0}))
  task = RewardFunctions(task=Arithmetic(), functions={of_turns: 1.0})
  message = r'response to the first prompt fails: TypeError.* line \d+, in '
  with pytest.raises(ValueError, match=message):
    begin(task)
  with pytest.raises(ValueError, match=message):
    begin(Mixture(parts=(MixturePart(name='part', task=task),)))


@dataclasses.dataclass(frozen=True)
class WithoutRightAnswers(Arithmetic):
  """Prompts that only a function of the user judges."""

  def target(self, example):
    raise NotImplementedError


def test_without_targets_the_prompt_is_judged(begin):
  calls.clear()
  task = WithoutRightAnswers()
  begin(RewardFunctions(task=task, functions={noted_list: 1.0}))
  assert calls == [task.example('train', 0).prompt]


def test_columns_are_asked_for_at_start(begin, tmp_path):
  """In any of the first rows: lines of JSON may lack some."""
  path = tmp_path / 'rows.jsonl'
  rows = [{'question': '1', 'answer': 1}, {'question': '2', 'answer': 2}]

  def task():
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    source = QuestionAnswer(sources={'train': f'{path}'}, id_field='question')
    return RewardFunctions(task=source, functions={with_column: 1.0})

  message = r"needs the columns \['level'\], but rows have \['answer', 'quest"
  with pytest.raises(ValueError, match=message):
    begin(task())
  path = tmp_path / 'with.jsonl'
  rows[0]['level'] = 3
  begin(task())


def test_every_part_of_a_mixture_is_asked(begin):
  """In training, its error would be one of samples."""
  parts = [
    MixturePart(name=name, task=task)
    for name, task in (
      ('right', Arithmetic()),
      ('wrong', Arithmetic(reward_weights=WRONG)),
    )
  ]
  begin(Mixture(parts=(parts[0],)))
  with pytest.raises(ValueError, match=f'Arithmetic: {REFUSED}'):
    begin(Mixture(parts=tuple(parts)))


def test_verifiers_on_the_device_are_traced(begin):
  """Only names are read; both components of the bandit may be weighted."""
  both = {'outcome': 1.0, 'value': 1.0}
  for weights, found in ((both, None), (WRONG, f'Bandit: {REFUSED}')):
    task = dataclasses.replace(begin.task, reward_weights=weights)
    with (
      pytest.raises(ValueError, match=found)
      if found
      else (contextlib.nullcontext())
    ):
      begin(task, on_device=True)


def test_an_evaluation_reads_the_split_that_it_asks_for(begin, tmp_path):
  """Data of training need not be there."""
  path = tmp_path / 'test.jsonl'
  path.write_text(json.dumps({'question': '1+1=', 'answer': '2'}) + '\n')
  sources = {'train': str(tmp_path / 'gone.jsonl'), 'test': str(path)}
  begin(QuestionAnswer(sources=sources), 'test')
  task = QuestionAnswer(sources=sources, reward_weights=WRONG)
  with pytest.raises(ValueError, match=REFUSED):
    begin(task, 'test')


@dataclasses.dataclass(frozen=True)
class WithoutTargets(Arithmetic):
  """The task of a user who does not train with supervision."""

  def target(self, example):
    raise NotImplementedError


def test_a_task_without_targets_says_nothing(begin):
  """Its first call does."""
  begin(WithoutTargets(reward_weights=WRONG))
