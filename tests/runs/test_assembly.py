"""From a configuration to the parts of a run."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.config import validate
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models.files import gguf_import
from rl_jax.models.tokenizer import HFTokenizer
from rl_jax.overrides import override
from rl_jax.runs import assembly, directory, loop, stages
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.policies import Policies
from rl_jax.runs.scanned import program
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import QuestionAnswer
from rl_jax.verification.journal import FOLDER
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Bandit


@pytest.fixture(scope='module')
def mesh():
  """One device."""
  return mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])


@pytest.fixture
def config(toy):
  """GRPO on the bandit."""
  return bandit.get_config(toy.get_method('grpo'))


@pytest.mark.parametrize('rows', [None, 4])
def test_groups_are_whole_unless_split(config, policies, rows):
  """Whatever their size is: wrappers of rollouts make larger ones."""
  update = dataclasses.replace(config.update, microbatch_rows=rows)
  config = dataclasses.replace(config, update=update)
  plain, _ = policies
  functions = stages.make_functions(config, plain.model, plain.tokenizer)
  parts = config.rollout.group_size // rows if rows else 1
  assert functions.forward.group_rows == rows
  assert functions.forward.microbatches == parts


def load(config, mesh, /, **fields):
  """The policy of the configuration with other fields of its source."""
  source = dataclasses.replace(config.model, **fields)
  return policy_lib.load(source, config.task, config.seed, mesh)


@pytest.fixture(scope='module')
def policies(toy, mesh):
  """The bandit's policy: plain, and with adapters and a value head."""
  config = bandit.get_config(toy.get_method('grpo'))
  return load(config, mesh), load(config, mesh, lora_rank=2, value_head=True)


def test_the_vocabulary_is_that_of_the_task(policies):
  """8 contexts, 8 actions, padding and end."""
  plain, _ = policies
  assert plain.model.vocab_size == plain.tokenizer.vocab_size == 18
  assert plain.params['model']['embed'].shape[0] == 18
  assert set(plain.trainable) == {'model'} and not plain.frozen


def test_adapters_freeze_the_model(policies):
  """Adapters and value head are trained; the model is that without them."""
  plain, adapted = policies
  assert set(adapted.trainable) == {'lora', 'value_head'}
  assert set(adapted.frozen) == {'model'}
  assert set(adapted.params) == {'lora', 'value_head', 'model'}
  jax.tree.map(
    np.testing.assert_array_equal,
    adapted.params['model'],
    plain.params['model'],
  )


def test_the_reference_shares_no_donated_buffer(config, policies):
  """A buffer may be donated once: trainable parts are copied, frozen not."""
  for policy in policies:
    rules = config.method.policies()
    held = Policies(rules, policy.frozen, policy.trainable)
    reference = held.frozen()['policies']['reference']
    assert set(reference) == set(policy.params)
    for name in policy.trainable:
      for x, y in zip(
        jax.tree.leaves(reference[name]),
        jax.tree.leaves(policy.trainable[name]),
        strict=True,
      ):
        assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
        np.testing.assert_array_equal(x, y)
    for name in policy.frozen:
      assert reference[name] is policy.frozen[name]


def test_no_reference_where_nothing_compares(toy, policies):
  """It would cost a forward pass and a copy of the weights."""
  rules = toy.get_method('rloo').policies()
  policy = policies[0]
  held = Policies(rules, policy.frozen, policy.trainable)
  assert held.frozen() is policy.frozen and not held.arrays()


def test_a_source_must_be_named(config, mesh):
  """A path, or a configuration of a new model with a task's alphabet."""
  with pytest.raises(ValueError, match='model.path or model.config'):
    load(config, mesh, config=None)
  with pytest.raises(ValueError, match='QuestionAnswer has no alphabet'):
    policy_lib.task_tokenizer(QuestionAnswer(sources={'train': 'x.jsonl'}))
  assert policy_lib.task_tokenizer(Bandit()).vocab_size == 18


def test_a_wrong_mesh_is_refused_before_anything_else(config):
  """Both numbers are named."""
  config = override(config, 'mesh.tensor', '64')
  with pytest.raises(ValueError, match='needs 64 devices, but there are'):
    assembly.prepare(config)


def test_a_refused_configuration_leaves_no_trace(config, tmp_path):
  """The corrected command must not meet the mistake's experiment.json."""
  workdir = str(tmp_path / 'run')
  bad = override(config, 'update.minibatch_prompts', '3')
  with pytest.raises(ValueError, match='must divide'):
    loop.Trainer(bad, workdir)
  directory.check(config, workdir)
  assert not (tmp_path / 'run').exists()


def test_a_run_without_a_checkpoint_is_named(config, mesh, tmp_path):
  """evaluate cannot take it, and says so."""
  workdir = str(tmp_path / 'run')
  directory.write_config(config, workdir)
  with pytest.raises(ValueError, match='run holds no checkpoint yet'):
    policy_lib.load_checkpoint(workdir, mesh)


def test_a_step_of_a_model_is_refused(mesh, tmp_path):
  """Only a work directory of training has steps; it is not ignored."""
  with pytest.raises(ValueError, match='is not a work directory .* no step 3'):
    policy_lib.load_checkpoint(str(tmp_path), mesh, 3)


@pytest.mark.parametrize(
  ('fields', 'workers'),
  [({}, 1), ({'on_device': True}, 0), ({'num_workers': 0}, 0)],
)
def test_rewards_have_a_worker_by_default(config, fields, workers):
  """With a time limit, unless the user says otherwise or text is not judged."""
  config = dataclasses.replace(config, verifier=VerifierConfig(**fields))
  validate(config)
  assert config.verifier.workers == workers
  assert program.refusal(config) is None  # scanned runs have none


def test_the_default_worker_is_started(config, mesh, tmp_path):
  """And its outcomes are journaled."""
  tokenizer = policy_lib.task_tokenizer(config.task)
  runner = assembly.make_runner(config, str(tmp_path), tokenizer, mesh)
  journal = runner._journal
  assert len(journal.pool.worker_pids()) == 1
  example = config.task.example('train', 0)
  target = config.task.target(example)
  (outcome,) = journal.reward([example], [target])
  assert outcome.components == config.task.reward(example, target)
  (path,) = (tmp_path / FOLDER).iterdir()
  assert len(path.read_text().splitlines()) == 1
  runner.close()


def test_the_journal_knows_what_judges(config, mesh, tmp_path):
  """Another task, or other rows of it, are asked again; moved ones are not."""
  tokenizer = policy_lib.task_tokenizer(config.task)

  def outcome(config, sha256, path):
    files = {'task.sources.train': {'sha256': sha256, 'path': path}}
    runner = assembly.make_runner(config, str(tmp_path), tokenizer, mesh, files)
    example, lines = (
      config.task.example('train', 0),
      runner._journal._journal._lines,
    )
    before = dict(lines)
    runner._journal.reward([example], [''])
    runner.close()
    return 'kept' if lines == before else 'asked'

  other = override(config, 'task.max_other', '0.7')
  assert outcome(config, 'a', 'x') == 'asked'
  assert outcome(config, 'a', 'y') == 'kept'
  assert outcome(config, 'b', 'y') == 'asked'
  assert outcome(other, 'b', 'y') == 'asked'


def test_a_description_is_that_of_the_present_model(config, mesh, tmp_path):
  """Written again if the model has changed, and only then."""
  path, numbers = tmp_path / policy_lib.DESCRIPTION / 'model.json', []
  for size in ('64', '64', '48'):
    source = override(config, 'model.config.mlp_size', size).model
    policy = policy_lib.load(source, config.task, 0, mesh)
    policy_lib.describe(policy, str(tmp_path))
    assert json.loads(path.read_text())['mlp_size'] == int(size)
    numbers.append(path.stat().st_ino)
  assert numbers[0] == numbers[1] != numbers[2]


def test_a_described_backend_is_not_written_twice(config, mesh, tmp_path):
  """Tokenizers that were read from files are other objects each time."""
  path, numbers = tmp_path / policy_lib.DESCRIPTION / 'model.json', []
  letters = ['<s>', '</s>', *'abc']
  for tokens in (letters, letters, [*letters, 'd']):
    policy = policy_lib.load(config.model, config.task, 0, mesh)
    types = [3, 3] + [1] * (len(tokens) - 2)
    backend = gguf_import.byte_level_bpe('smollm', tokens, [], types)
    tokenizer = HFTokenizer(backend, eos_ids=(1,), pad_id=0)
    policy = dataclasses.replace(policy, tokenizer=tokenizer)
    policy_lib.describe(policy, str(tmp_path))
    numbers.append(path.stat().st_ino)
  assert numbers[0] == numbers[1] != numbers[2]


def test_transforms_know_the_special_tokens(toy):
  """NLPO keeps padding and end; nothing else of the method changes."""
  config = bandit.get_config(toy.get_method('nlpo'))
  tokenizer = policy_lib.task_tokenizer(config.task)
  found = assembly.with_special_ids(config, tokenizer).method
  assert found.logits[0].always == (0, 1)
  assert found.replace(logits=config.method.logits) == config.method


def test_an_evaluation_goes_through_the_slots(config, mesh, monkeypatch):
  """It decodes as many rows at a time as the rollout, with the same limit."""
  made = []
  make = assembly.make_engine

  def spy(*args):
    return made.append(args[2]) or make(*args)

  monkeypatch.setattr(assembly, 'make_engine', spy)
  config = override(config, 'rollout.slots', '4')
  config = override(config, 'evaluation.num_samples', '2')
  tokenizer = policy_lib.task_tokenizer(config.task)
  policy = policy_lib.Policy(
    model=None, tokenizer=tokenizer, trainable=None, frozen={}
  )
  assembly.make_evaluator(config, policy, None, mesh)
  assert [limits.slots for limits in made] == [4, 4]
  assert {limits.max_response_tokens for limits in made} == {2}
  # Beams are of greedy responses only, in one turn.
  config = override(config, 'evaluation.beams', '3')
  assembly.make_evaluator(config, policy, None, mesh)
  assert [limits.beams for limits in made] == [None, None, 3, None]
  turns = dataclasses.replace(config.rollout, turns=TurnConfig())
  config = dataclasses.replace(config, rollout=turns)
  with pytest.raises(ValueError, match='evaluation.beams = 3'):
    assembly.make_evaluator(config, policy, None, mesh)


def test_votes_are_of_answers(config, tmp_path, mesh):
  """Without clusters=True, whatever leads to the answer; no votes, no ids."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'question': 'q', 'answer': '7'}) + '\n')
  config = dataclasses.replace(
    config,
    task=QuestionAnswer(sources={'train': str(path)}),
    verifier=VerifierConfig(num_workers=0),
  )
  evaluation = dataclasses.replace(
    config.evaluation, num_samples=2, borda_power=0.5
  )
  example = config.task.example('train', 0)
  for settings, names in (
    (evaluation, {'outcome', 'format', 'cluster_id'}),
    (dataclasses.replace(evaluation, num_samples=0), {'outcome', 'format'}),
  ):
    own = dataclasses.replace(config, evaluation=settings)
    runner = assembly.make_runner(own, None, None, mesh)
    texts = ['so 8', '4 * 2 = 8']
    found = runner._journal.reward([example] * 2, texts)
    assert [set(one.components) for one in found] == [names] * 2
    ids = [one.components.get('cluster_id') for one in found]
    assert ids[0] == ids[1]
