"""Regret-loss (C220): a decoder descends its own regret, without labels."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import regret, sequence, training, worlds
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward, token_statistics
from rl_jax.method import Method
from rl_jax.pieces.statistics import ActionProbs
from rl_jax.types import Array

STEPS, BATCH, TEST = 25, 64, 400
KINDS = ('random', 'switching', 'alternating')
NARROW, WIDE = 'trained on random', 'trained on all three'
RATES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def losses_of(kind: str, key: Array, number: int) -> Array:
  """Sequences, [B, T, A]."""
  world = worlds.Experts(steps=STEPS, sequences=kind)
  return jax.vmap(world.losses)(jax.random.split(key, number))


def hedge(loss_BTA: Array, eta: Array) -> Array:
  """The regret of Hedge, [B], by its probabilities."""
  before_BTA = jnp.cumsum(loss_BTA, axis=1) - loss_BTA
  return regret.regret(loss_BTA, jax.nn.softmax(-eta * before_BTA))


def measure(key_S: Array, scale: float) -> Results:
  """Regrets by kind of sequence."""
  updates = max(1, round(500 * scale))
  world = worlds.Experts(steps=STEPS)
  model = sequence.model_for(world, layers=2, width=32)
  method = Method(losses=(regret.RegretLoss(),))
  config = OptimizerConfig(learning_rate=3e-3, total_steps=updates)
  forward = Forward(model=model)

  def trained(kind: str, key: Array):
    params = sequence.init_params(world, model, key)

    def data(params, key):
      del params
      return regret.trajectories(world, losses_of(kind, key, BATCH))

    return training.fit(forward, method, data, params, key, config)[0]

  def one(key: Array) -> dict[str, dict[str, Array]]:
    test = jax.random.fold_in(key, 1)
    models = {NARROW: trained('random', key), WIDE: trained('mixed', key)}
    found = {}
    for kind in KINDS:
      loss_BTA = losses_of(kind, test, TEST)
      traj = regret.trajectories(world, loss_BTA)
      arms = {'uniform': hedge(loss_BTA, jnp.float32(0.0)).mean()}
      for name, params in models.items():
        need = ActionProbs(actions=(0, 1))
        stats = token_statistics(forward, params, traj, {need})
        prob_BTA = stats['action_probs'][:, 1:]
        arms[name] = regret.regret(loss_BTA, prob_BTA).mean()
      every = [hedge(loss_BTA, jnp.float32(eta)).mean() for eta in RATES]
      arms['Hedge, eta .5'] = every[RATES.index(0.5)]
      arms['Hedge, best eta'] = jnp.stack(every).min()
      found[f'regret, {kind}'] = arms
    return found

  return jax.tree.map(np.array, policies.over_seeds(one, key_S))


ROW = Row(
  'Regret-loss (C220), 2 actions, 25 steps',
  (
    Claim(
      'where it was trained the decoder is within 20% of the best Hedge',
      'regret, random',
      NARROW,
      'Hedge, best eta',
      1.2,
    ),
    Claim(
      'outside, on alternating losses, it is fooled: Hedge .5 is below it',
      'regret, alternating',
      'Hedge, eta .5',
      NARROW,
    ),
    Claim(
      'adversarial sequences in training mend that',
      'regret, alternating',
      WIDE,
      NARROW,
      0.5,
    ),
  ),
  measure,
)
