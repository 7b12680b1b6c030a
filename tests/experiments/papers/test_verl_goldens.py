"""The PPO row of verl's baselines against verl's formulas in float64.

The formulas are those of verl, trainer/ppo/core_algos.py and
utils/torch_functional.py @ b178a3cd, written down again on made-up numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers import recipe as recipe_lib
from rl_jax.learning.batch import make_batch
from rl_jax.learning.objective import objective

# Three responses of 4, 2 and 3 tokens, on made-up policies and values.
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], np.float64)
REWARD = np.array([1.0, 0.0, 1.0])
OLD = np.log([[0.5, 0.2, 0.9, 0.4], [0.3, 0.6, 1.0, 1.0], [0.7, 0.1, 0.8, 1.0]])
REF = np.log([[0.4, 0.3, 0.9, 0.2], [0.3, 0.5, 1.0, 1.0], [0.8, 0.2, 0.7, 1.0]])
NEW = np.log([[0.7, 0.1, 0.9, 0.5], [0.1, 0.9, 1.0, 1.0], [0.7, 0.4, 0.6, 1.0]])
OLD_VALUES = np.array(
  [[0.2, 0.9, 0.1, 0.6], [0.4, 0.1, 0.0, 0.0], [0.5, 0.0, 1.2, 0.0]]
)
NEW_VALUES = np.array(
  [[0.9, 0.8, 0.7, 0.5], [0.1, 0.0, 0.0, 0.0], [1.1, 0.9, 0.4, 0.0]]
)
ENTROPY = np.array(
  [[1.0, 2.0, 0.5, 1.5], [0.7, 0.2, 0.0, 0.0], [0.9, 1.1, 0.3, 0.0]]
)
COEF, CLIP, VALUE_CLIP, ENTROPY_COEF = 0.001, 0.2, 0.5, 0.001


def token_mean(values):
  """agg_loss of the kind token-mean."""
  return (values * MASK).sum() / MASK.sum()


def verl_advantages():
  """(whitened advantages, returns): apply_kl_penalty, then compute_gae."""
  rewards = -COEF * (OLD - REF) * MASK  # kl_penalty 'kl', which is k1
  for row, length in enumerate(MASK.sum(axis=1).astype(int)):
    rewards[row, length - 1] += REWARD[row]
  # gamma = lambda = 1: what is still to come, less the value.
  to_come = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
  advantages = (to_come - OLD_VALUES) * MASK
  returns = (advantages + OLD_VALUES) * MASK
  mean = token_mean(advantages)
  count = MASK.sum()
  variance = token_mean((advantages - mean) ** 2) * count / (count - 1)
  return (advantages - mean) / np.sqrt(variance + 1e-8) * MASK, returns


def verl_losses():
  """(policy loss, value loss, entropy) of one minibatch of all rows."""
  advantages, returns = verl_advantages()
  ratio = np.exp(NEW - OLD)
  plain = -advantages * ratio
  clipped = -advantages * np.clip(ratio, 1 - CLIP, 1 + CLIP)
  policy = np.maximum(plain, clipped)
  near = np.clip(NEW_VALUES, OLD_VALUES - VALUE_CLIP, OLD_VALUES + VALUE_CLIP)
  value = np.maximum((NEW_VALUES - returns) ** 2, (near - returns) ** 2)
  return token_mean(policy), 0.5 * token_mean(value), token_mean(ENTROPY)


def batch_of(method, toy):
  """The rollout after credit assignment."""
  traj = toy.trajectories(
    MASK,
    group_size=1,
    reward_B=REWARD,
    logp_old_BT=OLD * MASK,
    logp_ref_BT=REF * MASK,
    values_BT=OLD_VALUES,
  )
  traj, _, _ = make_batch(method, traj, method.init_state(3))
  return traj


def test_rewards_advantages_and_returns_are_those_of_verl(toy):
  """E1: k1 in the reward at 0.001, lambda 1, whitening with Bessel's rule."""
  method = recipe_lib.experiment('verl_baselines', 'ppo_0p5b').method
  traj = batch_of(method, toy)
  advantages, returns = verl_advantages()
  np.testing.assert_allclose(traj.advantages_BT, advantages, rtol=1e-5)
  np.testing.assert_allclose(traj.returns_BT, returns, rtol=1e-5, atol=1e-7)


def test_the_loss_is_the_sum_of_verls_three(toy):
  """E1: clipped policy loss, clipped value loss and entropy bonus, by token."""
  method = recipe_lib.experiment('verl_baselines', 'ppo_0p5b').method
  stats = {'logp': NEW, 'values': NEW_VALUES, 'entropy': ENTROPY}
  stats = {name: jnp.asarray(x * MASK) for name, x in stats.items()}
  traj, key = batch_of(method, toy), jax.random.key(0)
  loss, _ = objective(method, stats, traj, key)
  policy, value, entropy = verl_losses()
  expected = policy + value - ENTROPY_COEF * entropy
  np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_the_value_loss_is_clipped_at_half(toy):
  """The made-up values reach the clip on both sides, so that it acts."""
  moved = np.abs(NEW_VALUES - OLD_VALUES)[MASK > 0]
  assert (moved > VALUE_CLIP).any() and (moved < VALUE_CLIP).any()
  method = recipe_lib.experiment('verl_baselines', 'ppo_0p5b').method
  (loss,) = [x for x in method.losses if type(x).__name__ == 'ValueClip']
  assert (loss.clip, loss.coef) == (VALUE_CLIP, 0.5)
