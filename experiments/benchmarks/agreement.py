"""Compares the programs of this machine's device with a float32 reference.

python -m experiments.benchmarks.agreement

A random model of 4 layers scores responses, differentiates their log
probabilities and samples, with the attention and the dtype that the device gets
by default and with plain attention in float32 at the highest precision of
products. Prints one JSON line with, each as ||x - y|| / ||y||:

  logp                log probabilities of responses, prompts padded unequally
  gradient            gradient of their weighted sum by all parameters
  plain_logp, plain_gradient   the same of plain attention in the same dtype:
                      what the dtype costs without a kernel
  sampler             log probabilities that decoding recorded, against those
                      that scoring gives with the same dtype: the difference of
                      an importance ratio from 1 before the first update
  sampler_largest     the largest absolute difference of one token
  repeats             whether two calls of each program give the same bits
"""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration
from rl_jax import decoding, models
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.learning import statistics
from rl_jax.models import params as params_lib
from rl_jax.models import platform
from rl_jax.runs import assembly
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

N, G, P, T = 8, 4, 64, 64
MODEL = models.ModelConfig(
  vocab_size=1024,
  num_layers=4,
  width=512,
  num_heads=8,
  num_kv_heads=2,
  head_size=64,
  mlp_size=2048,
)


def relative(result, expected) -> float:
  """||found - expected|| / ||expected|| over all arrays of two trees."""
  pairs = [
    (np.asarray(x, np.float64), np.asarray(y, np.float64))
    for x, y in zip(
      jax.tree.leaves(result), jax.tree.leaves(expected), strict=True
    )
  ]
  return float(
    np.sqrt(sum(((x - y) ** 2).sum() for x, y in pairs))
    / np.sqrt(sum((y**2).sum() for _, y in pairs))
  )


def measured(mesh) -> dict:
  """The errors and the choices of the device."""
  own = platform.resolve(MODEL, platform=Platform.of_mesh(mesh))
  plain = dataclasses.replace(own, attention='plain')
  exact = dataclasses.replace(plain, compute_dtype='float32')
  key = assembly.run_key(0, mesh)
  params = params_lib.init_params(own, key, mesh)
  engine = make_engine(
    own,
    decoding.SamplingConfig(),
    EngineConfig(group_size=G, max_response_tokens=T),
    mesh=mesh,
  )
  rng = np.random.default_rng(0)
  pad_N1 = rng.integers(0, P, (N, 1))
  mask_NP = (np.arange(P)[None] >= pad_N1).astype(np.float32)
  prompt_NP = rng.integers(0, own.vocab_size, (N, P), np.int32)
  groups = np.arange(N, dtype=np.int32)
  empty = engine.start(prompt_NP, mask_NP, groups, 0, 0)
  traj = engine.generate(params, traj=empty, key=key)
  weight_BT = rng.normal(size=traj.mask_BT.shape).astype(np.float32)

  def programs(cfg):
    forward = statistics.Forward(model=cfg)

    def total(params):
      stats = statistics.token_statistics(forward, params, traj, ())
      logp_BT = stats[statistics.LOGP]
      return jnp.sum(logp_BT * weight_BT * traj.mask_BT), logp_BT

    return jax.jit(jax.grad(total, has_aux=True))

  found = {}
  repeats = True
  for name, cfg in (('own', own), ('plain', plain), ('exact', exact)):
    with jax.default_matmul_precision('highest' if cfg is exact else 'default'):
      program = programs(cfg)
      found[name], again = program(params), program(params)
    repeats &= all(
      np.array_equal(x, y)
      for x, y in zip(
        jax.tree.leaves(found[name]), jax.tree.leaves(again), strict=True
      )
    )
  (gradient, logp), (plain_gradient, plain_logp) = found['own'], found['plain']
  expected_gradient, expected = found['exact']
  again = engine.generate(params, traj=empty, key=key)
  repeats &= np.array_equal(traj.response_BT, again.response_BT)
  return {
    'attention': own.attention,
    'compute_dtype': own.compute_dtype,
    'logp': relative(logp, expected),
    'gradient': relative(gradient, expected_gradient),
    'plain_logp': relative(plain_logp, expected),
    'plain_gradient': relative(plain_gradient, expected_gradient),
    'sampler': relative(traj.logp_behaviour_BT, logp),
    'sampler_largest': float(np.abs(traj.logp_behaviour_BT - logp).max()),
    'mean_logp': float(np.mean(expected)),
    'repeats': repeats,
  }


def main(argv):
  """Prints the line."""
  del argv
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=1))
  with jax.set_mesh(mesh):
    row = measured(mesh)
  device = jax.devices()[0].device_kind
  print(json.dumps({'device': device, 'jax': jax.__version__, **row}))


if __name__ == '__main__':
  configuration.run(main)
