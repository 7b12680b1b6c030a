"""Episodes beside single responses: mixtures, further sets, evaluation."""

import dataclasses
import json
import subprocess
import sys

import pytest

from configs.methods import grpo
from configs.worlds import keydoor
from rl_jax.config import EvaluationConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.tasks import EvaluationSet, Mixture, MixturePart, WithTools
from rl_jax.tasks.base import TaskTraits
from rl_jax.tasks.environments import several
from rl_jax.tasks.evaluation_set import judged
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Arithmetic, KeyDoor

pytestmark = pytest.mark.usefixtures('no_mesh_left')

SUMS = Arithmetic(digits=1)
DOORS = KeyDoor(
  num_held_out=SUMS.num_prompts('test'),
  reward_weights={'outcome': 0.5, 'progress': 0.5},
)
BOTH = Mixture((MixturePart('doors', DOORS), MixturePart('sums', SUMS)))


@pytest.fixture(scope='module', name='run')
def _run(tmp_path_factory):
  """One iteration on doors and sums, evaluated on both and on each only."""
  config = keydoor.get_config(grpo.get_method())
  small = dataclasses.replace(
    config.model.config, num_layers=1, width=16, mlp_size=16
  )
  config = dataclasses.replace(
    config,
    iterations=1,
    task=BOTH,
    model=dataclasses.replace(config.model, config=small),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=4,
      group_size=2,
      max_response_tokens=17,
      turns=TurnConfig(
        max_turns=3, max_turn_tokens=3, max_observation_tokens=4
      ),
    ),
    update=dataclasses.replace(config.update, minibatch_prompts=None),
    evaluation=EvaluationConfig(
      every=1,
      num_prompts=4,
      sets=(EvaluationSet('own', task=SUMS), EvaluationSet('rest')),
    ),
    verifier=VerifierConfig(num_workers=1),
  )
  workdir = tmp_path_factory.mktemp('run')
  loop.Trainer(config, str(workdir)).run()
  return workdir


def test_a_mixture_of_episodes_and_responses_trains(run):
  """A sum is an episode of one turn, judged as without the mixture."""
  lines = read_jsonl(run / 'rollouts.jsonl')
  by_part = {True: [], False: []}
  for line in lines:
    doors = line['prompt'].startswith('k')
    by_part[doors].append(line)
    assert line['error'] is None
    assert len(line['turns']) == 1 or doors
    total = sum(t['rewards']['weighted'] for t in line['turns'])
    assert line['reward'] == pytest.approx(total)
    if not doors:
      (turn,) = line['turns']
      own = SUMS.reward(_sum_of(line), turn['action'])
      assert turn['rewards'] == {**own, 'weighted': own['outcome']}
      assert line['end'] == 'done'
  assert len(by_part[True]) == len(by_part[False]) == 4
  assert max(len(line['turns']) for line in by_part[True]) == 3


def _sum_of(line):
  example = SUMS.example('train', line['prompt_id'] - DOORS.num_train)
  assert example.prompt == line['prompt']
  return example


def test_sets_are_evaluated_by_their_own_task(run):
  """A set of single responses in a run of episodes, and parts of the other."""
  row = read_jsonl(run / 'metrics.jsonl')[-1]
  assert row['evaluation/own/n'] == row['evaluation/rest/n'] == 4
  assert row['evaluation/rest/doors/n'] == row['evaluation/rest/sums/n'] == 2
  for name in ('pass_at_1', 'own/pass_at_1', 'rest/pass_at_1'):
    assert 0 <= row[f'evaluation/{name}'] <= 1
  assert row['evaluation/own/reward_errors'] == 0


@pytest.mark.slow
@pytest.mark.parametrize('data', [None, 'keydoor', 'arithmetic'])
def test_evaluate_plays_episodes(run, data):
  """The task of the run; episodes and responses of other configurations."""
  given = [f'--checkpoint={run}', '--limit=3', '--num_samples=2']
  given += [f'--data={data}'] if data else []
  given += ['--set=task.digits=1'] if data == 'arithmetic' else []
  done = subprocess.run(
    [sys.executable, '-m', 'experiments.evaluate', *given],
    check=True,
    stdout=subprocess.PIPE,
    text=True,
  )
  found = json.loads(done.stdout)
  assert found['n'] == 3 and found['reward_errors'] == 0
  assert 0 <= found['avg_at_2'] <= found['pass_at_2'] <= 1
  assert ('reward/maze' in found) == (data != 'arithmetic')


def test_a_part_that_is_not_deterministic_makes_the_whole_so():
  tools = WithTools(task=SUMS, shown='text', deterministic=False)
  mixed = Mixture((MixturePart('doors', DOORS), MixturePart('tools', tools)))
  assert BOTH.traits.deterministic and not mixed.traits.deterministic
  sets = (EvaluationSet('tools', task=tools),)
  assert not judged(DOORS, sets).traits.deterministic


def test_parts_must_agree_on_the_form_of_turns():
  chat = type('ChatDoor', (KeyDoor,), {'traits': TaskTraits(chat=True)})()
  with pytest.raises(ValueError, match='Mixture.parts: all episodes must'):
    Mixture((MixturePart('a', DOORS), MixturePart('b', chat)))
  assert not Mixture((MixturePart('sums', SUMS),)).supports('make')
  chat = dataclasses.replace(chat, num_held_out=DOORS.num_held_out)
  mixed = Mixture((MixturePart('a', chat), MixturePart('sums', SUMS)))
  assert mixed.traits.chat and mixed.traits.role == 'user'
  examples = [mixed.example('test', i) for i in range(2)]
  chats = {
    e.meta['mixture_part']: several.begins_in_chat(mixed, e) for e in examples
  }
  assert chats == {'a': True, 'sums': False}
