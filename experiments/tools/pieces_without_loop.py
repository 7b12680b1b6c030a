"""Pieces and stages without the training loop: GRPO on a bandit.

python -m experiments.tools.pieces_without_loop
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

from configs.methods import grpo
from rl_jax import models
from rl_jax.decoding import SamplingConfig, generate, start_trajectories
from rl_jax.learning import batch, update
from rl_jax.learning import score as score_lib
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.learning.state import fresh_state
from rl_jax.learning.statistics import Forward
from rl_jax.models import params as params_lib

if __name__ == '__main__':
  argparse.ArgumentParser(description=__doc__).parse_args()

V, N, G = 8, 16, 8  # tokens 1..7; the right answer to prompt p is p
config = models.ModelConfig(
  vocab_size=V,
  num_layers=1,
  width=32,
  num_heads=2,
  num_kv_heads=2,
  head_size=16,
  mlp_size=64,
)
method = grpo.get_method().as_arrays()
params = params_lib.init_params(config, jax.random.key(0))
optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-2))
state = fresh_state(method, optimizer, params, num_ids=0)
forward = Forward(model=config)
score = jax.jit(functools.partial(score_lib.score, forward))
step = jax.jit(
  functools.partial(
    update.update_minibatch, forward, optimizer=optimizer, reuse_scores=True
  )
)
sample = jax.jit(
  functools.partial(
    generate, cfg=config, sampling=SamplingConfig(), max_new_tokens=1
  )
)
frozen = {'policies': {'reference': params}}
key, rng = jax.random.key(1), np.random.default_rng(0)
for iteration in range(40):
  prompt_N1 = rng.integers(1, V, (N, 1))
  traj = start_trajectories(
    prompt_N1,
    np.ones((N, 1)),
    prompt_N1[:, 0],
    group_size=G,
    max_response_tokens=1,
    first_serial=iteration * N,
  )
  traj = sample(state.params, traj=traj, key=key)
  traj, _ = score({**frozen, **state.params}, traj, method)
  right_B = traj.response_BT[:, 0] == jnp.repeat(prompt_N1[:, 0], G)
  traj = traj.replace(reward_B=right_B.astype(jnp.float32))
  traj, _, metrics = batch.make_batch(method, traj, {})
  rows = update.Batch(frozen=frozen, method=method, traj=traj, key=key)
  state, more = step(state, rows, jnp.arange(N))
  if iteration % 10 == 9:
    print(f'iteration {iteration + 1}: reward {metrics["reward/mean"]:.2f}')
