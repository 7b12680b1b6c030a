"""Continuous chains of thought: each step reads the mean of several tokens.

  place   0 ... m - 1                      m
  token   blank                            the answer
  input   mean of the rows of K draws      -

`inputs_BTF` holds the shares of the K draws at a place, which params['inputs']
maps to the width, so that the next place reads the mean of their embeddings.
Source: "Continuous Chain of Thought Enables Parallel Exploration and
Reasoning" (CoT2), alperengozeten/CoT2 train/continuous_train_grpo_mts.py (by a
digest). Here thoughts have embeddings of their own and are drawn from the
thought tokens only; the variant with Dirichlet draws is left out.
"""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import types
from rl_jax.checks import ranged
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.models import spec, transformer
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.ratios import (
  LOG_RATIO_BOUND,
  clipped_surrogate,
  log_ratio,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.pieces.statistics import ActionProbs
from rl_jax.types import Array, Trajectories, static

DRAWS, DRAWN_LOGP, TARGET = 'draws_BTA', 'drawn_logp_BTA', 'thought_BTA'


def _log(prob: Array) -> Array:
  """The logarithm, of 1e-30 at least."""
  return jnp.log(jnp.maximum(prob, 1e-30))


def draw_logp(prob_BTA: Array, draws: int, normalised: bool) -> Array:
  """Log-probabilities of a draw: softmax(logits / K), or softmax(logits)."""
  sharpness = 1 / draws if normalised else 1.0
  return jax.nn.log_softmax(sharpness * _log(prob_BTA), axis=-1)


@piece
class ThoughtClip(Loss):
  """PPO's clipped loss, where the ratio of a thought is that of its K draws.

    rho_t = exp(sum_k lp(token_k) - lp_old(token_k))

  With `normalised` lp is of softmax(logits / K); without it of softmax(logits),
  and the exponent is divided by K. Other tokens have their own ratio. K = 1 is
  PPOClip on the drawn tokens.
  """

  actions: tuple[int, ...] = static(default=(0, 1))  # thought tokens
  draws: int = ranged(3, 1, static=True)
  normalised: bool = static(default=True)
  clip: float = ranged(0.1, 0.0, 1.0)
  off_policy = True
  reads = {
    DRAWS: 'how often each thought token was drawn at every place',
    DRAWN_LOGP: 'log-probabilities of a draw when it was sampled',
  }

  @property
  def needs(self) -> tuple[Any, ...]:
    """Probabilities of the thought tokens."""
    return (ActionProbs(actions=self.actions),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    count_BTA = row_inputs.read(traj, DRAWS, self.reads[DRAWS])
    old_BTA = row_inputs.read(traj, DRAWN_LOGP, self.reads[DRAWN_LOGP])
    now_BTA = draw_logp(ctx.stats['action_probs'], self.draws, self.normalised)
    change_BT = (count_BTA * (now_BTA - old_BTA)).sum(axis=-1)
    if not self.normalised:
      change_BT = change_BT / self.draws
    change_BT = jnp.clip(change_BT, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    own_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    thought_BT = count_BTA.sum(axis=-1) > 0
    ratio_BT = jnp.exp(jnp.where(thought_BT, change_BT, own_BT))
    value_BT = clipped_surrogate(ratio_BT, adv_BT, self.clip, self.clip)
    return LossOut(value_BT, {'thought/ratio': ratio_BT})


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
    soft_BT = -(target_BTA * _log(ctx.stats['action_probs'])).sum(axis=-1)
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
    extras={DRAWS: none_BTA, DRAWN_LOGP: none_BTA},
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
      drawn_B = jax.random.categorical(now, _log(prob_BA))
      drawn_B = prob_BA.argmax(axis=1) if soft else drawn_B
      answer_BT = traj.response_BT.at[:, place].set(action_A[drawn_B])
      return traj.replace(response_BT=answer_BT)
    logp_BA = draw_logp(prob_BA, loss.draws, loss.normalised)
    shape = loss.draws, len(prob_BA)
    drawn_KB = jax.random.categorical(now, logp_BA, shape=shape)
    count_BA = jax.nn.one_hot(drawn_KB, len(action_A)).sum(axis=0)
    share_BA = prob_BA / prob_BA.sum(axis=1, keepdims=True)
    share_BA = share_BA if soft else count_BA / loss.draws
    inputs_BTF: Any = traj.inputs_BTF
    traj = traj.replace(
      inputs_BTF=inputs_BTF.at[:, place].set(share_BA),
      extras={
        DRAWS: traj.extras[DRAWS].at[:, place].set(count_BA),
        DRAWN_LOGP: traj.extras[DRAWN_LOGP].at[:, place].set(logp_BA),
      },
    )
  return traj
