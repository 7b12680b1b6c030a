"""CoT2 (L146): the least sum of signed digits that is not negative.

The prompt is four digits; thought t is the set of sums that the first t digits
can have, with either sign. A decoder is taught uniform distributions over them,
or one path of signs that ends at the answer; GRPO on the answer follows, with
draws of tokens or of a Dirichlet distribution, and with a KL to the taught
policy, as published, or without.
"""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import thoughts, training
from rl_jax.control.thought_draws import DirichletDraws, TokenDraws
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces import credit
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.types import Array, Trajectories

STEPS, LARGEST = 4, 3
MOST = STEPS * LARGEST
SUMS = 2 * MOST + 1  # tokens 0 to SUMS - 1 are sums from -MOST on
BLANK = SUMS + LARGEST
PROMPTS, GROUP, DRAWS = 16, 8, (1, 3, 6)
ACCURACY = 'right answers of samples'
DISTANCE = 'nats of a chain from the taught policy, after GRPO'
KL = 0.1  # as published


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """(prompts [81, 4], targets [2, 81, 5, SUMS], answers [81]).

  The first target is uniform on reachable sums, the second the first path that
  ends at the answer; the last place has none.
  """
  every = list(itertools.product(range(1, LARGEST + 1), repeat=STEPS))
  target = np.zeros((2, len(every), STEPS + 1, SUMS), np.float32)
  answers = []
  for number, digits in enumerate(every):
    paths = [
      np.cumsum(np.multiply(digits, signs))
      for signs in itertools.product((1, -1), repeat=STEPS)
    ]
    best = min(path[-1] for path in paths if path[-1] >= 0)
    answers.append(best + MOST)
    right = next(path for path in paths if path[-1] == best)
    for t in range(STEPS):
      reachable = sorted({path[t] + MOST for path in paths})
      target[0, number, t, reachable] = 1 / len(reachable)
      target[1, number, t, right[t] + MOST] = 1.0
  prompts = np.asarray(every) + SUMS - 1
  return prompts.astype(np.int32), target, np.asarray(answers, np.int32)


def _model(width: int) -> ModelConfig:
  """One layer and one head, as published."""
  return presets.small(
    vocab_size=BLANK + 1,
    num_layers=1,
    width=width,
    num_heads=1,
    num_kv_heads=1,
    head_size=width,
    mlp_size=4 * width,
  )


def taught(
  forward: Forward, key: Array, updates: int, discrete: bool
) -> dict[str, Any]:
  """Parameters after supervised training on distributions, or on paths."""
  prompts, targets, answers = (jnp.asarray(x) for x in tables())
  target = targets[1 if discrete else 0]
  loss = thoughts.ThoughtTargets(actions=tuple(range(SUMS)))

  def rows(params: Any, key: Array) -> Trajectories:
    del params
    taken_N = jax.random.randint(key, (PROMPTS * GROUP,), 0, len(prompts))
    traj = thoughts.blank_rows(prompts[taken_N], 1, STEPS, SUMS, BLANK)
    target_BTA = target[taken_N]
    response_BT = traj.response_BT.at[:, -1].set(answers[taken_N])
    return traj.replace(
      response_BT=response_BT,
      inputs_BTF=target_BTA,
      extras={thoughts.TARGET: target_BTA},
    )

  method = Method(losses=(loss,), aggregation=TokenMean())
  config = OptimizerConfig(learning_rate=3e-3, total_steps=updates)
  params = thoughts.init_params(forward.model, SUMS, key)
  return training.fit(forward, method, rows, params, key, config)[0]


def answered(
  forward: Forward,
  params: Any,
  loss: thoughts.ThoughtClip,
  key: Array,
  taken_N: Array,
  **how: bool,
) -> Trajectories:
  """Groups of answers to these prompts, with reward 1 if they are right."""
  prompts, _, answers = (jnp.asarray(x) for x in tables())
  traj = thoughts.blank_rows(prompts[taken_N], GROUP, STEPS, SUMS, BLANK)
  traj = thoughts.think(forward, params, traj, key, loss, **how)
  right_B = traj.response_BT[:, -1] == jnp.repeat(answers[taken_N], GROUP)
  reward_B = right_B.astype(jnp.float32)
  return traj.replace(reward_B=reward_B, rewards={'outcome': reward_B})


def reinforced(
  forward: Forward,
  start: Any,
  loss: thoughts.ThoughtClip,
  key: Array,
  updates: int,
  kl: float,
) -> Any:
  """Parameters after GRPO on the answer; kl: to the start, per nat."""
  penalty = thoughts.ThoughtKL(actions=loss.actions, draw=loss.draw, coef=kl)
  method = Method(
    credit=(credit.GroupCenter(), credit.GroupScale(ddof=0)),
    losses=(loss, penalty) if kl else (loss,),
    aggregation=TokenMean(),
  )

  def rows(params: Any, key: Array) -> Trajectories:
    take_key, key = jax.random.split(key)
    taken_N = jax.random.randint(take_key, (PROMPTS,), 0, LARGEST**STEPS)
    traj = answered(forward, params, loss, key, taken_N)
    if not kl:
      return traj
    return thoughts.with_reference(forward, start, traj, loss)

  config = OptimizerConfig(learning_rate=1e-3, total_steps=updates)
  return training.fit(forward, method, rows, start, key, config)[0]


def distance(
  forward: Forward, params: Any, start: Any, traj: Trajectories, loss: Any
) -> Array:
  """The mean over rows of `params` of log p / p_start, of a whole chain."""
  own_BT, start_BT = (
    thoughts.with_reference(forward, one, traj, loss).extras[thoughts.REFERENCE]
    for one in (params, start)
  )
  return (own_BT - start_BT).sum(axis=1).mean()


def _sizes(scale: float) -> tuple[int, int]:
  """Updates on targets, and of GRPO."""
  return max(1, round(400 * scale)), max(1, round(150 * scale))


def _clip(draw: Any) -> thoughts.ThoughtClip:
  return thoughts.ThoughtClip(actions=tuple(range(SUMS)), draw=draw)


def measure(key_S: Array, scale: float) -> Results:
  """Accuracy before and after GRPO, by the number of draws."""
  first, then = _sizes(scale)
  forward = Forward(model=_model(16))
  every_N = jnp.arange(LARGEST**STEPS)

  def one(key: Array) -> dict[str, dict[str, Array]]:
    test = jax.random.fold_in(key, 1)
    start = taught(forward, key, first, discrete=False)
    path = taught(forward, key, first, discrete=True)
    found: dict[str, dict[str, Array]] = {'before': {}, 'after': {}}

    def accuracy(params: Any, loss: thoughts.ThoughtClip, **how: bool):
      traj = answered(forward, params, loss, test, every_N, **how)
      return traj.reward_B.mean()

    arms = [('discrete path', path, 1)]
    arms += [(f'K {draws}', start, draws) for draws in DRAWS]
    for name, params, draws in arms:
      loss = _clip(TokenDraws(draws=draws))
      score = functools.partial(accuracy, loss=loss)
      found['before'][name] = score(params)
      trained = reinforced(forward, params, loss, key, then, 0.0)
      found['after'][name] = score(trained)
    loss = _clip(TokenDraws())
    found['before']['whole distribution'] = accuracy(start, loss, soft=True)
    return {
      f'{ACCURACY}, {when} GRPO': arms for when, arms in found.items()
    } | {
      f'{ACCURACY}, K 3': {
        when: found[when]['K 3'] for when in ('before', 'after')
      }
    }

  return policies.over_seeds(one, key_S)


def measure_draws(key_S: Array, scale: float) -> Results:
  """Accuracy before and after GRPO, by draws of tokens or of a Dirichlet
  distribution, and how far GRPO goes from the taught policy.
  """
  first, then = _sizes(scale)
  forward = Forward(model=_model(16))
  every_N = jnp.arange(LARGEST**STEPS)
  arms = {
    'K 3': (TokenDraws(), 0.0),
    'K 3, KL': (TokenDraws(), KL),
    'Dirichlet': (DirichletDraws(), 0.0),
    'Dirichlet, KL': (DirichletDraws(), KL),
  }

  def one(key: Array) -> dict[str, dict[str, Array]]:
    test = jax.random.fold_in(key, 1)
    start = taught(forward, key, first, discrete=False)
    found: dict[str, dict[str, Array]] = {DISTANCE: {}}
    for name, (draw, kl) in arms.items():
      loss = _clip(draw)
      before = answered(forward, start, loss, test, every_N)
      trained = reinforced(forward, start, loss, key, then, kl)
      after = answered(forward, trained, loss, test, every_N)
      found[f'{ACCURACY}, {name}'] = {
        'before': before.reward_B.mean(),
        'after': after.reward_B.mean(),
      }
      found[DISTANCE][name] = distance(forward, trained, start, after, loss)
    return found

  return policies.over_seeds(one, key_S)


ROW = Row(
  'CoT2 (L146), least sums of four signed digits, width 16',
  (
    Claim(
      'GRPO on the answer raises the accuracy of thoughts of three draws',
      f'{ACCURACY}, K 3',
      'before',
      'after',
    ),
    Claim(
      'after GRPO six draws are more accurate than one',
      f'{ACCURACY}, after GRPO',
      'K 1',
      'K 6',
    ),
    Claim(
      'after GRPO six draws are more accurate than a discrete path',
      f'{ACCURACY}, after GRPO',
      'discrete path',
      'K 6',
    ),
  ),
  measure,
)
DRAWS_ROW = Row(
  'CoT2 (L146) with a KL to the taught policy, and with Dirichlet draws',
  (
    Claim(
      'with the KL, too, GRPO raises the accuracy of thoughts of three draws',
      f'{ACCURACY}, K 3, KL',
      'before',
      'after',
    ),
    Claim(
      'with the KL, GRPO raises the accuracy of Dirichlet thoughts',
      f'{ACCURACY}, Dirichlet, KL',
      'before',
      'after',
    ),
    Claim(
      'the KL holds thoughts of three draws nearer to the taught policy',
      DISTANCE,
      'K 3, KL',
      'K 3',
    ),
  ),
  measure_draws,
)
