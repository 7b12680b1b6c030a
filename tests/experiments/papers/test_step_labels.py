"""Labels of steps of chains, with completions by hand."""

import types

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from experiments.papers.worlds import step_labels
from rl_jax.models import presets
from rl_jax.models.files import model_dir
from rl_jax.models.params import init_params
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import Example
from rl_jax.worlds import Chain

EXAMPLE = Example(prompt='3+4*2=', answer='4', id=0)
TASK = Chain()
TEXTS = {
  'right': '<3+4=7;7*2=4>4',
  'slip': '<3+4=8;8*2=6>6',
  'lucky': '<3+4=2;2*2=4>4',  # a wrong step, the right answer
}


def responses(*names):
  return [step_labels.read(TASK, EXAMPLE, TEXTS[name]) for name in names]


class Writer:
  """Half of the responses are right, after a slip's second step none.

  They are guesses here, whatever the partial response.
  """

  def __init__(self):
    self.asked = []

  def __call__(self, prefixes, samples):
    self.asked.append([text for _, text in prefixes])
    return [
      ['5'] * samples
      if text.endswith('8*2=6>')
      else ['4'] * (samples // 2) + ['5'] * (samples - samples // 2)
      for _, text in prefixes
    ]


def test_a_policy_of_another_task_is_named(tmp_path, monkeypatch):
  """The tokens of a prompt, or of its partial response, are too many."""
  cfg = presets.small(
    vocab_size=ByteTokenizer().vocab_size, num_layers=1, width=16
  )
  params = init_params(cfg, jax.random.key(0))
  model_dir.save_model(str(tmp_path), cfg, params, ByteTokenizer())
  config = configuration.build('chain', 'sft')
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  write = step_labels.writer(str(tmp_path), config, mesh, jax.random.key(0))
  monkeypatch.setattr(step_labels, '_BATCH', types.SimpleNamespace(value=1))
  for prefix in (('1' * 100, ''), ('1', '1' * 100)):
    with pytest.raises(ValueError, match='100.* is it a policy of this task'):
      write([prefix], 1)


def test_exact_checks():
  found = responses('right', 'slip', 'lucky')
  assert [(r.first_error, r.right) for r in found] == [
    (-1, True),
    (0, False),
    (0, True),
  ]


def test_fractions_by_hand():
  """Equal beginnings are asked once, nothing after a 0, and the last step has
  the outcome."""
  write = Writer()
  found = step_labels.fractions(
    TASK, responses('right', 'slip', 'right'), write, 8
  )
  assert found == [[0.5, 0.5, 1.0], [0.5, 0.0], [0.5, 0.5, 1.0]]
  assert write.asked == [
    ['<3+4=7;', '<3+4=8;'],
    ['<3+4=7;7*2=4>', '<3+4=8;8*2=6>'],
  ]


def test_files_by_hand():
  """Monte Carlo finds the slip a step too late and the lucky one not at all; a
  judge without errors is the exact check, so only the right one is kept."""
  found = responses('right', 'slip', 'lucky')
  share = step_labels.fractions(TASK, found, Writer(), 8)
  files, agreement = step_labels.labels(
    found, share, 0.0, np.random.default_rng(0)
  )
  assert files['exact'] == files['judge'] == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
  assert files['monte_carlo'] == [[1, 1, 1], [1, 0, 0], [1, 1, 1]]
  assert files['soft'] == [[0.5, 0.5, 1], [0.5, 0, 0], [0.5, 0.5, 1]]
  assert files['consensus'] == [[1, 1, 1], None, None]
  assert agreement == pytest.approx(
    {
      'monte_carlo_is_exact': 1 / 3,
      'judge_is_exact': 1.0,
      'kept': 1 / 3,
      'consensus_is_exact': 1.0,
    }
  )
