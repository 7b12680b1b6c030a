"""A piece in a slot that is not its own is refused before tracing."""

import pytest

from configs.worlds import bandit
from rl_jax import overrides
from rl_jax.config import validate

WRONG = {
  'losses+': 'GroupCenter()',
  'credit+': 'PPOClip()',
  'weights+': 'KLPenalty()',
  'shaping+': 'TokenMean()',
  'logits+': 'GroupCenter()',
  'aggregation': 'GroupCenter()',
  'value_target': 'GAE()',
  'group_filter': 'Uniform()',
  'selector': 'ZeroVariance()',
  'rollout': 'Frozen()',
  'reference': 'TokenMean()',
  'credit': '[Bandit()]',
}


@pytest.mark.parametrize('slot', WRONG)
def test_a_piece_in_the_wrong_slot_is_named(toy, slot):
  config = bandit.get_config(toy.get_method('grpo'))
  name = slot.removesuffix('+')
  piece = WRONG[slot]
  if slot.endswith('+'):
    config = overrides.add_piece(config, f'method.{name}', piece)
  elif piece.startswith('['):
    piece = piece[1:-1]
    value = overrides.parse_piece(piece)
    method = config.method.replace(**{name: (value,)})
    config = bandit.get_config(method)
  else:
    config = overrides.override(config, f'method.{name}', piece)
  cls = piece.partition('(')[0]
  with pytest.raises(ValueError, match=rf'method\.{name} holds {cls}'):
    validate(config)
