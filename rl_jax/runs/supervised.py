"""Supervised training on prompt/response pairs, by the same update stage.

A pair is a row whose response tokens were written by a teacher: the method is
NegativeLogLikelihood with TokenMean, and everything else (microbatches, mesh,
non-finite guard) is that of reinforcement learning.
"""

from collections.abc import Sequence
import functools
from typing import Any

import jax
import numpy as np

from rl_jax import randomness
from rl_jax.learning import update as update_lib
from rl_jax.learning.optimizers import (
  OptimizerConfig,
  make_optimizer,
)
from rl_jax.learning.state import sharded_state
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import compilation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import ENVIRONMENT, PAD, POLICY, Metrics, Trajectories


def supervised_method() -> Method:
  """Mean negative log-likelihood over response tokens."""
  return Method(
    losses=(losses.NegativeLogLikelihood(),), aggregation=TokenMean()
  )


def supervised_rows(
  prompts: tuple[np.ndarray, np.ndarray, np.ndarray],
  targets: Sequence[Sequence[int]],
  max_response_tokens: int,
  trained: Sequence[Sequence[bool]] | None = None,
) -> Trajectories:
  """Rows (numpy) with given responses, which must fit; groups of one.

  prompts: (tokens [N, P], mask [N, P], ids [N]). targets include the
  end-of-sequence token. trained: of each token; None: all.
  """
  prompt, mask, ids = prompts
  shape = (len(targets), max_response_tokens)
  response = np.zeros(shape, np.int32)
  kind = np.full(shape, PAD, np.int32)
  for row, tokens in enumerate(targets):
    if len(tokens) > max_response_tokens:
      raise ValueError(
        f'target {int(ids[row])} has {len(tokens)} tokens, more than '
        f'max_response_tokens = {max_response_tokens}'
      )
    response[row, : len(tokens)] = tokens
    by_policy = True if trained is None else np.asarray(trained[row])
    kind[row, : len(tokens)] = np.where(by_policy, POLICY, ENVIRONMENT)
  length = np.asarray([len(t) for t in targets], np.int32)
  ones = np.ones(len(targets), np.float32)
  zeros = np.zeros(shape, np.float32)
  return Trajectories(
    prompt_NP=prompt,
    prompt_mask_NP=mask,
    prompt_id_N=ids,
    group_size=1,
    response_BT=response,
    kind_BT=kind,
    length_B=length,
    finished_B=ones > 0,
    row_id_B2=np.stack([ids, np.zeros_like(ids)], axis=1),
    policy_version_B=np.zeros_like(length),
    mask_BT=(kind == POLICY).astype(np.float32),
    valid_B=ones,
    weight_B=ones,
    logp_behaviour_BT=zeros,
  )


class SupervisedTrainer:
  """Steps of maximum likelihood on a policy; holds the training state."""

  def __init__(
    self,
    policy: policy_lib.Policy,
    optimizer: OptimizerConfig,
    mesh: jax.sharding.Mesh,
    *,
    microbatches: int = 1,
    seed: int = 0,
  ):
    self._policy, self._mesh = policy, mesh
    self._whole = mesh_lib.replicated(mesh)
    self._method = assembly.method_on_mesh(supervised_method(), mesh)
    self._key = assembly.run_key(seed, mesh)
    chain = make_optimizer(optimizer)
    self.state = sharded_state(
      supervised_method(), chain, policy.trainable, 0, mesh
    )
    self._step = jax.jit(
      functools.partial(
        update_lib.update_minibatch,
        Forward(model=policy.model, microbatches=microbatches),
        optimizer=chain,
        reuse_scores=False,
      ),
      donate_argnames='state',
      out_shardings=(mesh_lib.shardings_of(self.state), self._whole),
      compiler_options=compilation.training_options(),
    )

  @property
  def params(self) -> Any:
    """The whole current parameter tree."""
    return {**self._policy.frozen, **self.state.params}

  def step(self, rows: Trajectories) -> Metrics:
    """One optimizer step on numpy rows; returns device metrics."""
    groups = np.arange(rows.prompt_NP.shape[0], dtype=np.int32)
    rows, groups = jax.device_put((rows, groups), self._whole)
    self.state, metrics = self._step(
      state=self.state,
      batch=update_lib.Batch(
        frozen=self._policy.frozen,
        method=self._method,
        traj=rows,
        key=self._key,
      ),
      group_M=groups,
    )
    return metrics


def shuffled_batches(num_examples: int, batch_size: int, seed: int):
  """Yields index arrays for ever: passes in new orders, batches cross them."""
  position, epoch = 0, 0
  order = np.empty(0, np.int64)
  while True:
    while len(order) - position < batch_size:
      rng = np.random.default_rng([randomness.SELECTION, seed, epoch])
      order = np.concatenate([order[position:], rng.permutation(num_examples)])
      position, epoch = 0, epoch + 1
    yield order[position : position + batch_size]
    position += batch_size
