"""Times one DPO step on pairs of data: score of the reference, and update.

Both see the prompt once a pair. Random tokens of full length.
"""

import functools
import time
from typing import Any

import jax
import numpy as np

from configs.methods import dpo
from rl_jax.data.recorded import recorded_rows
from rl_jax.learning import batch as batch_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import update as update_lib
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.learning.state import sharded_state
from rl_jax.learning.statistics import Forward
from rl_jax.models import params as params_lib
from rl_jax.planning import costs
from rl_jax.runs import assembly
from rl_jax.runtime import compilation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import RecordedResponse

STAGE = 'pairs'
SHAPE = costs.Shape(32, 2, 128, 64)  # pairs, rows, prompt and response tokens


class Pairs:
  """A compiled DPO step of one shape; groups are pairs."""

  def __init__(self, cfg: Any, shape: costs.Shape, mesh: Any, count: int):
    """count: microbatches of the score and of the update."""
    rng, key = np.random.default_rng(0), assembly.run_key(0, mesh)
    tokens = rng.integers(
      0, cfg.vocab_size, (shape.num_prompts, 2, shape.new_tokens)
    )
    labels = [RecordedResponse(label=1), RecordedResponse(label=0, reward=0.0)]
    trained = [True] * shape.new_tokens
    records = [
      [(label, row, trained) for label, row in zip(labels, pair, strict=True)]
      for pair in tokens
    ]
    prompts = (shape.num_prompts, shape.prompt_tokens)
    groups = np.arange(shape.num_prompts, dtype=np.int32)
    arrays = (
      rng.integers(0, cfg.vocab_size, prompts, np.int32),
      np.ones(prompts, np.float32),
      groups,
    )
    replicated = mesh_lib.replicated(mesh)
    rows = recorded_rows(arrays, records, shape.new_tokens)
    self._rows, self._groups = jax.device_put((rows, groups), replicated)
    optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-5))
    params = params_lib.init_params(cfg, key, mesh)
    method = dpo.get_method()
    self.state = sharded_state(method, optimizer, params, 0, mesh)
    copies = jax.tree.map(lambda x: x.copy(), params)
    self._frozen = {'policies': {'reference': copies}}
    self._method, self._key = method.as_arrays(), key
    forward = Forward(model=cfg, microbatches=count)
    options = compilation.training_options(cfg.platform)
    self._score = jax.jit(
      functools.partial(score_lib.score, forward, policy=False),
      compiler_options=options,
    )
    self._make_batch = jax.jit(batch_lib.make_batch)
    self._update = jax.jit(
      functools.partial(
        update_lib.update_minibatch,
        forward,
        optimizer=optimizer,
        reuse_scores=False,
      ),
      donate_argnames='state',
      compiler_options=options,
    )
    started = time.perf_counter()
    self.step()
    self.first_seconds = time.perf_counter() - started

  def step(self) -> None:
    """One optimizer step on all pairs; waits for it."""
    params = {**self._frozen, **self.state.params}
    traj, _ = self._score(params, self._rows, self._method)
    traj, *_ = self._make_batch(self._method, traj, {})
    batch = update_lib.Batch(
      frozen=self._frozen, method=self._method, traj=traj, key=self._key
    )
    self.state, metrics = self._update(
      state=self.state, batch=batch, group_M=self._groups
    )
    jax.block_until_ready((metrics, self.state.params))


def model_flops(cfg: Any, shape: costs.Shape) -> float:
  """FLOP of the score and of the update."""
  return sum(
    costs.model_flops(cfg, shape, stage) for stage in ('score', 'update')
  )
