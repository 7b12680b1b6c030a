"""One training run as pure functions: what `Trainer` and `Collector` do, on
arrays, for tasks that verify on the device (see `whole_run`).
"""

from collections.abc import Callable
import dataclasses
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import batch, randomness, stages
from rl_jax.config import ExperimentConfig
from rl_jax.masking import by_group
from rl_jax.method import Method
from rl_jax.optimizers import make_optimizer
from rl_jax.prompts import PromptSet
from rl_jax.rollouts.generate import start_trajectories
from rl_jax.selection import ShuffledPass
from rl_jax.tasks import base
from rl_jax.types import Array, Metrics, TrainState, Trajectories


@struct.dataclass(kw_only=True)
class Prompts:
  """Every prompt of the split, and what its verifier needs to know."""

  prompt_NP: Array
  mask_NP: Array
  id_N: Array
  answer_NA: Array
  answer_length_N: Array


@struct.dataclass(kw_only=True)
class Run:
  """What a run has of its own; several runs have a leading axis."""

  key_data: Array  # of the run's key
  method: Method
  params: Any  # trainable, at the start
  groups_IKM: Array  # of the K optimizer steps of every iteration


@struct.dataclass(kw_only=True)
class Carry:
  """What one iteration hands to the next."""

  state: TrainState
  selector: Any
  lagged: Any | None
  iteration: Array


def encode_prompts(config: ExperimentConfig, tokenizer: Any) -> Prompts:
  """The whole training split as host arrays."""
  rollout = config.rollout
  prompts = PromptSet(
    config.task,
    'train',
    tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  examples, prompt, mask, ids = prompts.batch(range(len(prompts)))
  answer, length = config.task.device_answers(examples, tokenizer)
  return Prompts(
    prompt_NP=prompt,
    mask_NP=mask,
    id_N=ids,
    answer_NA=answer,
    answer_length_N=length,
  )


@dataclasses.dataclass(frozen=True)
class JittedRun:
  """The static parts of a run; its methods are pure functions of arrays."""

  config: ExperimentConfig
  tokenizer: Any
  functions: stages.Functions

  @property
  def selector(self) -> Any:
    """Which prompts come next."""
    return self.config.method.selector or ShuffledPass()

  def __call__(
    self, prompts: Prompts, frozen: Any, run: Run, keep: Callable
  ) -> tuple[TrainState, Metrics, Any]:
    """(final state, metrics [I], what `keep` kept of the rollouts [I, ...])."""

    def step(carry, groups_KM):
      carry, traj, metrics = self.iteration(
        prompts, frozen, run, carry, groups_KM
      )
      return carry, (metrics, keep(traj))

    carry, (metrics, kept) = lax.scan(
      step, self.start(prompts, run), run.groups_IKM
    )
    return carry.state, metrics, kept

  def start(self, prompts: Prompts, run: Run) -> Carry:
    """Before the first iteration."""
    method, zero = self.config.method, jnp.int32(0)
    optimizer = make_optimizer(self.config.optimizer)
    # States of pieces are tables over the task's own ids, skipped ones too.
    num_ids = self.config.task.num_prompts('train')
    return Carry(
      state=TrainState(
        step=zero,
        params=run.params,
        opt_state=optimizer.init(run.params),
        method_state=method.init_state(num_ids),
        skipped=zero,
      ),
      selector=self.selector.init(len(prompts.id_N)),
      lagged=None if method.lagged_period() is None else run.params,
      iteration=zero,
    )

  def iteration(
    self,
    prompts: Prompts,
    frozen: Any,
    run: Run,
    carry: Carry,
    groups_KM: Array,
  ) -> tuple[Carry, Trajectories, Metrics]:
    """What the loop does between two boundaries, in the same order."""
    key, state = jax.random.wrap_key_data(run.key_data), carry.state
    reference = None
    if 'logp_ref' in self.config.method.needs():
      reference = {**frozen, **run.params}
    if carry.lagged is not None:
      frozen = {**frozen, 'lagged': {**frozen, **carry.lagged}}
    params = {**frozen, **state.params}
    traj, selector = self.rollout(prompts, params, key, carry)
    scores = {}
    if self.functions.score is not None:
      traj, scores = self.functions.score(params, reference, traj, run.method)
    traj, method_state, made = batch.make_batch(
      run.method, traj, state.method_state
    )
    state, update = stages.optimizer_steps(
      self.functions.update_minibatch,
      state.replace(method_state=method_state),
      frozen,
      run.method,
      traj,
      key,
      list(groups_KM),
    )
    iteration = carry.iteration + 1
    carry = Carry(
      state=state,
      selector=selector,
      lagged=self._lagged(carry.lagged, state.params, iteration),
      iteration=iteration,
    )
    tokens = {'rollout/tokens': traj.length_B.sum()}
    return carry, traj, {**scores, **made, **update, **tokens}

  def rollout(
    self, prompts: Prompts, params: Any, key: Array, carry: Carry
  ) -> tuple[Trajectories, Any]:
    """(rewarded rows, the selector's state): what `Collector.collect` does."""
    rollout, task = self.config.rollout, self.config.task
    index_N, selector = self.selector.select(
      carry.selector,
      randomness.purpose_key(key, randomness.SELECTION),
      rollout.num_prompts,
    )
    drawn = jax.tree.map(lambda x: x[index_N], prompts)
    traj = start_trajectories(
      drawn.prompt_NP,
      drawn.mask_NP,
      drawn.id_N,
      group_size=rollout.group_size,
      max_response_tokens=rollout.max_response_tokens,
      first_serial=carry.iteration * rollout.num_prompts,
      policy_version=carry.state.step,
    )
    traj = self.functions.generate(params, traj=traj, key=key)
    rewards = task.score_device(
      traj.response_BT,
      traj.length_B,
      jnp.repeat(drawn.answer_NA, rollout.group_size, axis=0),
      jnp.repeat(drawn.answer_length_N, rollout.group_size),
      self.tokenizer,
    )
    reward_B = base.combine(rewards, task.reward_weights)
    reward_NG = by_group(reward_B, rollout.group_size)
    traj = traj.replace(rewards=rewards, reward_B=reward_B)
    return traj, self.selector.observe(selector, index_N, reward_NG)

  def _lagged(self, lagged, params, iteration):
    """The copy of the policy that `method.logits` reads, renewed when due."""
    if lagged is None:
      return None
    due = iteration % self.config.method.lagged_period() == 0
    return jax.tree.map(
      lambda new, old: jnp.where(due, new, old), params, lagged
    )
