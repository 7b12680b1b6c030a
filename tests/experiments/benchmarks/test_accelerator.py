"""Accelerator table, bytes of decoding, peers and scaling."""

import sys

import jax
import pytest

from experiments.benchmarks import (
  accelerator,
  scaling,
  stages,
  timing,
  torch_peer,
)
from rl_jax import models
from rl_jax.planning import costs
from rl_jax.runtime import mesh as mesh_lib


def line(system, stage='generate', rows=64, **fields):
  """One line of the file."""
  cell = {'system': system, 'preset': 'm', 'stage': stage, 'rows': rows}
  return cell | fields


def test_the_table_has_shares_bars_ratios_and_reasons():
  """A later line replaces an earlier one; predictions are beside it."""
  speed = 'generated_tokens_per_second'
  share = dict(generate='share_of_copy', update='share_of_matrix_product')
  first, second = {share['generate']: 0.1}, {share['generate']: 0.456}
  updated = {share['update']: 0.4}
  memory = dict(
    program_memory_gb={'generate': 9.5},
    device_memory_gb=21.0,
    compile_seconds={'generate': 4.0},
  )
  predicted = dict(seconds_predicted=1.5, program_memory_gb=9.6)
  text = accelerator.table(
    [
      line('rl_jax', seconds_median=9.0, **{speed: 1.0}, **first),
      line('rl_jax', seconds_median=2.0, **{speed: 4096.0}, **second, **memory),
      line('torch', seconds_median=5.0, **{speed: 1638.4}),
      line('rl_jax', 'update', 512, seconds_median=1.0, **updated),
      line('torch', 'update', 512, skipped='torch is not installed'),
    ],
    [line('rl_jax', **predicted)],
  )
  rows = text.splitlines()
  assert rows[2] == (
    '| m | generate | 64 | 2.000 | 1.500 | 4,096 | 45.6% | 30% | 9.50 | 9.60 '
    '| 21.00 | 4.0 | 5.000 | 2.50 |'
  )
  assert rows[3] == (
    '| m | update | 512 | 1.000 |  |  | 40.0% | 35% |  |  |  |  '
    '| not measured |  |'
  )
  assert rows[-1] == 'not measured: torch update m 512: torch is not installed'


def test_bytes_that_decoding_needs():
  """2 layers, 1 key head of 4 channels, float32: a token is 64 bytes of cache.

  3 decoding steps (the first of 4 tokens comes from prefill), 2 prompts of 5
  tokens, 6 rows. Prompts 3 * 2 * 5 * 64 = 1920; live 6 * 64 * (1 + 2 + 3) =
  2304; read 6 * 64 * 3 * 3 = 3456; logits 3 * 6 * 7 * 4 = 504. Weights: 2 * (8
  * (8 + 4 + 4 + 8) + 3 * 8 * 16 + 16) + 8 * 7 + 8 = 1248, 4 bytes, 3 times.
  """
  cfg = models.ModelConfig(
    vocab_size=7,
    num_layers=2,
    width=8,
    num_heads=2,
    num_kv_heads=1,
    head_size=4,
    mlp_size=16,
    tied_embeddings=False,
  )
  found = costs.decode_bytes(cfg, costs.Shape(2, 3, 5, 4))
  assert found == {
    'needed': 14976 + 1920 + 2304,
    'weights': 14976,
    'cache_needed': 1920 + 2304,
    'cache_read': 1920 + 3456,
    'logits': 504,
  }


@pytest.mark.parametrize('preset', torch_peer.MODELS)
def test_peers_have_our_sizes(preset):
  """The two tables of sizes agree."""
  ours = stages.PRESETS[preset]
  assert torch_peer.MODELS[preset][1] == {
    'vocab_size': ours.vocab_size,
    'hidden_size': ours.width,
    'intermediate_size': ours.mlp_size,
    'num_hidden_layers': ours.num_layers,
    'num_attention_heads': ours.num_heads,
    'num_key_value_heads': ours.num_kv_heads,
  }
  assert ours.head_size * ours.num_heads == ours.width
  assert ours.tied_embeddings


def test_without_torch_the_reason_is_given(monkeypatch):
  """A missing module is a reason, not an error."""
  monkeypatch.setitem(sys.modules, 'torch', None)
  reason = torch_peer.unavailable('tiny')
  assert reason == 'torch is not installed'


def test_exponents_and_figure(tmp_path, capsys):
  """Seconds that grow quadratically have exponent 2."""
  rows = [
    {
      'axis': axis,
      'value': value,
      'generate_seconds': 0.1 * value**2,
      'generate_flop': 5.0 * value,
      'update_seconds': 3.0,
      'update_flop': value**0.5,
    }
    for axis in scaling.AXES
    for value in (2, 4, 8)
  ]
  path = tmp_path / 'figure.png'
  scaling.draw(rows, str(path))
  printed = capsys.readouterr().out.splitlines()
  assert printed[0] == 'group_size generate: 2.00, theory 1.00'
  assert printed[1] == 'group_size update: -0.00, theory 0.50' or (
    printed[1] == 'group_size update: 0.00, theory 0.50'
  )
  assert path.stat().st_size > 10_000
  assert scaling.read(str(tmp_path / 'none')) == []


@pytest.mark.slow
def test_rates_are_positive():
  """The measured rates that shares refer to."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  flop, copied = timing.rates('float32', mesh, 64)
  assert flop > 0 and copied > 0
