"""The plan of a configuration: sizes that fit, bounds, refused flags."""

import os
import pathlib
import subprocess
import sys

import pytest

from experiments.flags import configuration
from experiments.tables import plan as plan_tables
from rl_jax.planning import memory_plan, roofline
from rl_jax.planning.collectives import Collective
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ('SmolLM2-135M', 'Qwen2.5-7B')


def plan(*arguments):
  """The finished process of experiments.plan on the bandit."""
  command = [sys.executable, '-m', 'experiments.plan', '--config=bandit']
  return subprocess.run(
    [*command, *arguments],
    cwd=ROOT,
    env={**os.environ, 'XLA_FLAGS': '--xla_backend_optimization_level=0'},
    capture_output=True,
    text=True,
  )


def test_what_fits_falls_with_size_and_length():
  """7 billion float32 weights need 28 GB; longer responses, fewer prompts."""
  config = configuration.build('smollm2_gsm8k', 'grpo')
  rows = roofline.fitting(config, 24e9, (512, 2048, 8192), NAMES)
  found = {(row['model'], row['trained']): row for row in rows}
  for trained in ('all', 'LoRA 16'):
    assert found['Qwen2.5-7B', trained][512] is None
    row = found['SmolLM2-135M', trained]
    assert row[512] > row[2048] >= 1
    assert row[8192] is None  # beyond its 8,192 positions
  small = found['SmolLM2-135M', 'all'][512]
  adapted = found['SmolLM2-135M', 'LoRA 16'][512]
  assert adapted >= small


def test_the_roofline_of_a_bound():
  """By hand: 2 s of compute, 3 s of memory, 1 s of interconnect."""
  card = roofline.Card(1e12, 1e11, 1e10, 24e9)
  bound = roofline.Bound('update', 2e12, 3e11, 1e10)
  assert bound.seconds(card) == {
    'compute': 2.0,
    'memory': 3.0,
    'interconnect': 1.0,
  }
  text = plan_tables.roofline([bound, bound], card, 'toy')
  assert text.count('memory\n') == 2 and 'at least 6.00 seconds' in text


def test_the_work_of_a_step():
  """6 N D and attention: an update is 3 forward passes, 4 with remat."""
  config = configuration.build('qwen2p5_7b_gsm8k', 'grpo')
  model = policy_lib.planned_model(config.model, config.task, Platform())
  mesh = mesh_lib.abstract_mesh(config.mesh)
  found = memory_plan.estimate(config, model, mesh)
  sent = {'generate': 0.0, 'score': 0.0, 'update': 8e9}
  generate, score, update = roofline.roofline(config, model, found, 64, sent)
  # 64 prompts of 512 and 512 rows of 511 tokens through 6.5e9 weights of
  # layers, and 0.55e9 of the head at 262,144 positions, on 64 devices.
  weights = 2 * (64 * 512 + 512 * 511) * 6.525e9 + 2 * 262144 * 0.545e9
  assert 1 < generate.flop * 64 / weights < 1.1  # and attention
  # The reference; no scores before the one step, so one more forward pass.
  assert score.flop == generate.flop
  assert update.flop == pytest.approx(5 * generate.flop)
  assert (generate.sent, update.sent) == (0.0, 8e9)


def test_tables_name_what_they_count():
  """One line per kind and group; a stage without collectives says so."""
  one = Collective(kind='all-gather', group=4, count=7, bytes=4_000_000_000)
  text = plan_tables.traffic({'make_batch': [], 'update': [one]})
  assert ['make_batch', 'none'] in [x.split() for x in text.splitlines()]
  (line,) = [line for line in text.splitlines() if 'all-gather' in line]
  assert line.split() == ['update', 'all-gather', '4', '7', '4.000', '3.000']


@pytest.mark.slow
def test_the_plan_of_the_bandit_on_8_devices():
  """Every table is there, and make_batch exchanges nothing."""
  done = plan('--devices=8', '--mesh=2,2,2')
  assert done.returncode == 0, done.stderr
  for text in (
    'Programs by their compiler',
    'make_batch          none',
    'all-reduce',
    'at least',
  ):
    assert text in done.stdout, text
  assert 'T=512' in done.stdout


@pytest.mark.slow
def test_the_plan_of_split_responses():
  """Two tokens over two devices; sampling has rows on all of them."""
  done = plan('--devices=8', '--mesh=2,2,1,2', '--nocompile')
  assert done.returncode == 0, done.stderr
  assert 'fsdp=2 sequence=2 tensor=1' in done.stdout
  line = 'rows split over 4, the 2 tokens of a response over 2; sampling: rows '
  assert line + 'over 8' in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
  ('arguments', 'text'),
  [
    (['--devices=8', '--mesh=2,2'], '--mesh=2,2: expected DATA,FSDP,TENSOR['),
    (['--devices=8', '--mesh=2,2,x'], 'product is --devices=8'),
    (['--devices=0'], '--devices=0 must be at least 1'),
    (['--devices=3'], 'must divide the microbatch'),
    (['--devices=4', '--mesh=1,1,1,4'], 'mesh.sequence = 4 must divide'),
  ],
)
def test_a_bad_plan_is_refused(arguments, text):
  """One line, and status 2, before anything is compiled."""
  done = plan(*arguments)
  assert done.returncode == 2 and text in done.stderr
  assert 'Traceback' not in done.stderr
