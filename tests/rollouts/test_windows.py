"""Layers with windows and caps: sampler and trainer agree on what they see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.decoding import decode
from rl_jax.decoding import slots as decode_slots
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.models import spec

# The window ends within the prompt, within a block and across blocks.
CFG = models.ModelConfig(
  vocab_size=17,
  num_layers=2,
  width=16,
  num_heads=4,
  num_kv_heads=2,
  head_size=4,
  mlp_size=24,
  attention_cap=1.0,
  logit_cap=3.0,
  window=6,
  windowed=(0,),
  window_rope_theta=50.0,
)
N, G, P, T = 4, 4, 9, 70


def start():
  rng = np.random.default_rng(5)
  mask_NP = np.ones((N, P))
  mask_NP[1:3, :4] = 0
  return decoding.start_trajectories(
    rng.integers(4, CFG.vocab_size, (N, P)),
    mask_NP,
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )


@pytest.mark.slow  # tests/models/test_transformer.py has a fast one
@pytest.mark.parametrize(
  ('slots', 'widths', 'most_places'),
  [(None, [16], 4), (None, [16, 8, 4], 4), (6, [6, 3], 1)],
)
def test_log_probs_agree(monkeypatch, slots, widths, most_places):
  """Below 1e-4, in narrowing batches, refilled slots and packed updates."""
  monkeypatch.setattr(decode, 'batch_widths', lambda *_: widths)
  monkeypatch.setattr(decode_slots, 'MOST_PLACES', most_places)
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda x: jnp.asarray(rng.normal(0.3, 0.5, x.shape), jnp.float32),
    spec.abstract(models.specs(CFG)),
  )
  traj = decoding.generate(
    params,
    CFG,
    start(),
    jax.random.key(1),
    decoding.SamplingConfig(eos_ids=(2,)),
    max_new_tokens=T,
    slots=slots,
  )
  lengths = np.asarray(traj.length_B)
  assert lengths.max() > 40 and len(set(lengths)) > 4, lengths
  for capacity in (None, int(lengths.reshape(N, G).sum(1).max())):
    forward = Forward(model=CFG, capacity=capacity)
    stats = statistics.token_statistics(forward, params, traj, ())
    np.testing.assert_allclose(stats['logp'], traj.logp_behaviour_BT, atol=1e-4)
