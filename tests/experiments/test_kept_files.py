"""Commands that would replace what they read, or end late: refused at once."""

import dataclasses
import pathlib

import jax
import pytest

from configs.worlds import bandit
from experiments.flags import outputs
from rl_jax.models import params
from rl_jax.models.files import model_dir
from rl_jax.runs import policy

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = '--workdirs=run'
SFT = ('--config=bandit', '--steps=2', '--batch_size=8')
REPLACED = {
  'export_weights': [
    (['--checkpoint=model', '--out=model'], 'would replace --checkpoint'),
    (['--checkpoint=link', '--out=model/'], 'would replace --checkpoint'),
    (['--checkpoint=run', '--out=run/policy'], 'would replace policy of'),
    (
      ['--checkpoint=model', '--out=x', '--pad_token=x'],
      "--pad_token='x': CharTokenizer has no other token",
    ),
  ],
  'import_weights': [
    (['--source=model', '--out=link', '--untrained=5'], 'replace --source'),
    (
      ['--source=run', '--adapters=model', '--out=model'],
      'would replace --adapters',
    ),
  ],
  'train': [
    (
      ['--config=bandit', '--set=iterations=0', '--workdir=model'],
      'model holds a model (model.json): give another --workdir',
    )
  ],
  'rollout_rows': [([RUN, '--out=run/rollouts.jsonl'], 'would replace')],
  'report': [
    ([RUN, '--out=run/rollouts.jsonl'], 'would replace rollouts.jsonl'),
    (['--results=text', '--out=text'], 'would replace --results'),
    ([RUN, '--out=x', '--max_megabytes=nan'], '--max_megabytes=nan: '),
    ([RUN, '--out=x', '--max_megabytes=-1'], '--max_megabytes=-1.0: '),
    ([RUN, '--out=x', '--watch=nan'], '--watch=nan: '),
  ],
  'play': [(['--task=keydoor', f'--seed={2**64}'], f'--seed={2**64}: ')],
  'plot': [([RUN, '--out=run/metrics.jsonl'], 'would replace metrics.jsonl')],
  'sft': [
    ([*SFT, '--out=folder'], 'holds files that rl_jax did not write'),
    ([*SFT, '--out=text'], 'is a file: not replaced'),
    ([*SFT, '--model=link', '--out=model'], 'would replace --model'),
    (
      [*SFT, '--out=x', '--stop_accuracy=1', '--set=evaluation.every=0'],
      'never evaluated',
    ),
  ],
  'plan': [
    *(
      ([f'--{flag}={value}', '--config=bandit'], f'--{flag}=')
      for flag in ('flops', 'bandwidth', 'interconnect')
      for value in ('0', '-1', 'nan', 'inf')
    ),
    *(
      ([f'--responses={value}', '--config=bandit'], f'--responses={value}: ')
      for value in ('abc', '0', '-1', '8,', '')
    ),
  ],
}


@pytest.fixture(scope='module')
def place(tmp_path_factory):
  """A model, a link to it, a run, and files of a user."""
  place = tmp_path_factory.mktemp('place')
  config = bandit.get_config(None)
  tokenizer = policy.task_tokenizer(config.task)
  cfg = dataclasses.replace(
    config.model.config, vocab_size=tokenizer.vocab_size
  )
  weights = params.init_params(cfg, jax.random.key(0))
  model_dir.save_model(str(place / 'model'), cfg, weights, tokenizer)
  (place / 'link').symlink_to('model')
  (place / 'folder').mkdir()
  (place / 'folder/file').write_text('of the user')
  (place / 'text').write_text('text')
  (place / 'run').mkdir()
  for name in set(outputs.RUN_FILES) - {policy.DESCRIPTION}:
    (place / 'run' / name).write_text('{"step": 1, "reward/mean": 1}\n')
  return place


def contents(place):
  """{path: bytes} of all files."""
  paths = sorted(x for x in place.rglob('*') if x.is_file())
  return {str(path.relative_to(place)): path.read_bytes() for path in paths}


@pytest.fixture(scope='module')
def answers(place, answers_of):
  """The answers of every binary; no file differs."""
  before = contents(place)
  commands = {name: [x for x, _ in REPLACED[name]] for name in REPLACED}
  found = answers_of(place, commands)
  assert contents(place) == before
  return found


@pytest.mark.parametrize('name', sorted(REPLACED))
def test_what_is_read_stays_as_it_is(answers, name):
  """Exit code 2, one line with the flag."""
  for (command, text), (code, said, raised) in zip(
    REPLACED[name], answers[name], strict=True
  ):
    assert (code, raised) == (2, None), (command, said)
    assert text in said and len(said.splitlines()) == 1, (command, said)


def test_sft_needs_no_evaluation(tmp_path, answers_of):
  """Without --stop_accuracy nothing waits for an accuracy; it continues."""
  off = '--set=evaluation.every=0'
  short = [*SFT, '--max_response_tokens=2', off, '--out=out']
  metric = '--set=stopping.metric=null'
  found = answers_of(tmp_path, {'sft': [short, [*short, metric]]})['sft']
  for code, said, raised in found:
    assert (code, raised) == (0, None), said
    assert 'out: 2 steps, nll ' in said and 'accuracy' not in said
  assert (tmp_path / 'out/model.json').exists()
