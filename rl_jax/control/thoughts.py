"""Continuous chains of thought: each step reads the mean of several tokens.

  place   0 ... m - 1                      m
  token   blank                            the answer
  input   mean of the rows that are drawn  -

`inputs_BTF` holds the shares of thought tokens that `thought_draws` draws at a
place, which params['inputs'] maps to the width, so that the next place reads
the mean of their embeddings.
Source: "Continuous Chain of Thought Enables Parallel Exploration and
Reasoning" (CoT2), alperengozeten/CoT2 train/continuous_train_grpo_mts.py (by a
digest). Here thoughts have embeddings of their own and are drawn from the
thought tokens only.
"""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.checks import ranged
from rl_jax.control import thought_draws
from rl_jax.learning.statistics import LOGP, Forward, token_statistics
from rl_jax.models import spec, transformer
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.ratios import (
  LOG_RATIO_BOUND,
  clipped_surrogate,
  log_ratio,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut, Regularizer
from rl_jax.pieces.statistics import ActionProbs
from rl_jax.types import Array, Trajectories, static

DRAWN, DRAWN_LOGP = 'drawn_BTA', 'drawn_logp_BT'
REFERENCE, TARGET = 'thought_ref_BT', 'thought_BTA'


def _thoughts_BT(traj: Trajectories) -> Array:
  """Returns whether a place is a thought: its shares add up to 1."""
  inputs_BTF: Any = traj.inputs_BTF
  return inputs_BTF.sum(axis=-1) > 0


@piece
class ThoughtClip(Loss):
  """PPO's clipped loss, where the ratio of a thought is that of what was drawn.

    rho_t = exp(log p(drawn_t) - log p_old(drawn_t))

  with the likelihood of `draw`. Other tokens have their own ratio. TokenDraws
  of one token is PPOClip on the drawn tokens.
  """

  actions: tuple[int, ...] = static(default=(0, 1))  # thought tokens
  draw: Any = static(default=thought_draws.TokenDraws())
  clip: float = ranged(0.1, 0.0, 1.0)
  off_policy = True
  reads = {
    DRAWN: 'what was drawn at every place, in the form of `draw`',
    DRAWN_LOGP: 'its log-likelihood when it was sampled',
  }

  @property
  def needs(self) -> tuple[Any, ...]:
    """Probabilities of the thought tokens."""
    return (ActionProbs(actions=self.actions),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    drawn_BTA = row_inputs.read(traj, DRAWN, self.reads[DRAWN])
    old_BT = row_inputs.read(traj, DRAWN_LOGP, self.reads[DRAWN_LOGP])
    now_BT = self.draw.logp(ctx.stats['action_probs'], drawn_BTA)
    change_BT = jnp.clip(now_BT - old_BT, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    own_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    ratio_BT = jnp.exp(jnp.where(_thoughts_BT(traj), change_BT, own_BT))
    value_BT = clipped_surrogate(ratio_BT, adv_BT, self.clip, self.clip)
    return LossOut(value_BT, {'thought/ratio': ratio_BT})


@piece
class ThoughtKL(Regularizer):
  """KLPenalty, where the likelihood of a thought is that of what was drawn.

    l_t = coef k3(log p(drawn_t), log p_ref(drawn_t))

  Other tokens have their own likelihood. `with_reference` says what the
  reference gives. TokenDraws of one token is KLPenalty on the drawn tokens.
  """

  actions: tuple[int, ...] = static(default=(0, 1))
  draw: Any = static(default=thought_draws.TokenDraws())
  coef: float = ranged(0.1, 0.0)  # per nat
  reads = {
    DRAWN: ThoughtClip.reads[DRAWN],
    REFERENCE: 'log-likelihood of thoughts and answer under the reference',
  }

  @property
  def needs(self) -> tuple[Any, ...]:
    """Probabilities of the thought tokens."""
    return (ActionProbs(actions=self.actions),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    drawn_BTA = row_inputs.read(traj, DRAWN, self.reads[DRAWN])
    ref_BT = row_inputs.read(traj, REFERENCE, self.reads[REFERENCE])
    now_BT = jnp.where(
      _thoughts_BT(traj),
      self.draw.logp(ctx.stats['action_probs'], drawn_BTA),
      ctx.stats['logp'],
    )
    kl_BT = kl_estimate(now_BT, ref_BT, 'k3')
    return LossOut(self.coef * kl_BT, {'policy/kl_ref': kl_BT})


@piece
class ThoughtTargets(Loss):
  """Cross-entropy to a distribution over thoughts, and of the answer.

  The targets are uniform on what is reachable, or one-hot for discrete chains.
  """

  actions: tuple[int, ...] = static(default=(0, 1))
  from_data = True
  imitates = True
  reads = {TARGET: 'the wanted distribution over thought tokens'}

  @property
  def needs(self) -> tuple[Any, ...]:
    """Probabilities of the thought tokens."""
    return (ActionProbs(actions=self.actions),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    target_BTA = row_inputs.read(ctx.traj, TARGET, self.reads[TARGET])
    soft_BT = -(target_BTA * thought_draws.log(ctx.stats['action_probs'])).sum(
      axis=-1
    )
    thought_BT = target_BTA.sum(axis=-1) > 0
    return LossOut(jnp.where(thought_BT, soft_BT, -ctx.stats['logp']), {})


def init_params(
  model: ModelConfig, thoughts: int, key: Array
) -> dict[str, Any]:
  """Parameters of the decoder, and the embeddings of thoughts."""
  specs = transformer.specs(model)
  shape = thoughts, model.width
  specs['inputs'] = spec.ParamSpec(shape, 'float32', (None, None), 0.5)
  return spec.init(specs, key)


def blank_rows(
  prompt_NP: Array, group_size: int, steps: int, thoughts: int, blank: int
) -> Trajectories:
  """Rows [B, steps + 1] of blank tokens, before anything is drawn."""
  N, T = prompt_NP.shape[0], steps + 1
  B = N * group_size
  index_B = jnp.arange(B, dtype=jnp.int32)
  ones_B, none_BTA = jnp.ones(B), jnp.zeros((B, T, thoughts))
  return Trajectories(
    prompt_NP=prompt_NP,
    prompt_mask_NP=jnp.ones(prompt_NP.shape),
    prompt_id_N=jnp.arange(N, dtype=jnp.int32),
    group_size=group_size,
    response_BT=jnp.full((B, T), blank, jnp.int32),
    kind_BT=jnp.full((B, T), types.POLICY, jnp.int32),
    length_B=jnp.full(B, T, jnp.int32),
    finished_B=jnp.ones(B, bool),
    row_id_B2=jnp.stack([index_B // group_size, index_B % group_size], axis=1),
    policy_version_B=jnp.zeros(B, jnp.int32),
    mask_BT=jnp.ones((B, T)),
    valid_B=ones_B,
    weight_B=ones_B,
    logp_behaviour_BT=jnp.zeros((B, T)),
    reward_B=jnp.zeros(B),
    inputs_BTF=none_BTA,
    extras={DRAWN: none_BTA, DRAWN_LOGP: jnp.zeros((B, T))},
  )


def think(
  forward: Forward,
  params: Any,
  traj: Trajectories,
  key: Array,
  loss: ThoughtClip,
  *,
  soft: bool = False,
) -> Trajectories:
  """Blank rows with their thoughts and a drawn answer.

  loss: says how thoughts are drawn. soft: every step reads its whole
  distribution in place of draws, and the answer is the likeliest. One forward
  pass a place.
  """
  (need,) = loss.needs
  action_A = jnp.asarray(loss.actions)
  T = traj.response_BT.shape[1]
  for place in range(T):
    stats = token_statistics(forward, params, traj, {need})
    prob_BA = jax.lax.stop_gradient(stats['action_probs'][:, place])
    now = jax.random.fold_in(key, place)
    if place == T - 1:
      drawn_B = jax.random.categorical(now, thought_draws.log(prob_BA))
      drawn_B = prob_BA.argmax(axis=1) if soft else drawn_B
      answer_BT = traj.response_BT.at[:, place].set(action_A[drawn_B])
      return traj.replace(response_BT=answer_BT)
    share_BA, drawn_BA = loss.draw.sample(now, prob_BA)
    if soft:
      share_BA = prob_BA / prob_BA.sum(axis=1, keepdims=True)
    logp_BT = loss.draw.logp(prob_BA[:, None], drawn_BA[:, None])
    inputs_BTF: Any = traj.inputs_BTF
    traj = traj.replace(
      inputs_BTF=inputs_BTF.at[:, place].set(share_BA),
      extras={
        DRAWN: traj.extras[DRAWN].at[:, place].set(drawn_BA),
        DRAWN_LOGP: traj.extras[DRAWN_LOGP].at[:, place].set(logp_BT[:, 0]),
      },
    )
  return traj


def with_reference(
  forward: Forward, params: Any, traj: Trajectories, loss: ThoughtClip
) -> Trajectories:
  """Rows with the likelihoods that the policy `params` gives to what was drawn.

  loss: that with which the rows were drawn.
  """
  (need,) = loss.needs
  stats = token_statistics(forward, params, traj, {need, LOGP})
  ref_BT = jnp.where(
    _thoughts_BT(traj),
    loss.draw.logp(stats['action_probs'], traj.extras[DRAWN]),
    stats['logp'],
  )
  ref_BT = jax.lax.stop_gradient(ref_BT)
  return traj.replace(extras={**traj.extras, REFERENCE: ref_BT})
