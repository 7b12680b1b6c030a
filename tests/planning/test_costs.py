"""FLOP and bytes of experts: of those that tokens take."""

import dataclasses

from rl_jax.models import ModelConfig
from rl_jax.planning import costs

SHAPE = costs.Shape(2, 3, 5, 4)  # 2 prompts of 5, 6 rows of 4 tokens
EXPERTS = ModelConfig(
  vocab_size=300,
  num_layers=2,
  width=64,
  num_heads=4,
  num_kv_heads=2,
  head_size=16,
  mlp_size=32,
  num_experts=8,
  experts_per_token=2,
)


def test_flop_are_of_the_experts_that_a_token_takes():
  """As one MLP of two experts' size, and the router: 28 tokens are fed."""
  dense = dataclasses.replace(
    EXPERTS, num_experts=0, experts_per_token=0, mlp_size=2 * 32
  )
  router = 2 * 2 * 64 * 8 * (2 * 5 + 6 * 3)
  found = costs.model_flops(EXPERTS, SHAPE, 'score')
  assert found == router + costs.model_flops(dense, SHAPE, 'score')


def test_experts_that_no_row_takes_are_not_read():
  """One row takes 2 of 8 a step, six rows perhaps all."""
  expert = 3 * 64 * 32
  assert costs.resting_weights(EXPERTS) == 2 * 6 * expert
  assert costs.resting_weights(EXPERTS, 6) == 0
  one = dataclasses.replace(SHAPE, num_prompts=1, group_size=1)
  six = costs.decode_bytes(EXPERTS, SHAPE)['weights']
  # Three steps of float32.
  assert six - costs.decode_bytes(EXPERTS, one)['weights'] == (
    3 * 4 * 2 * 6 * expert
  )
