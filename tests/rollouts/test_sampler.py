"""A sampler describes the rows of an iteration."""

import types

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.learning import score as score_lib
from rl_jax.rollouts.sampler import Sampler
from rl_jax.rollouts.wrappers.guided import join_groups


def test_log_probs_are_of_the_prompt_that_rows_have(toy):
  """Not what the sampler reported, as score has it of foreign rows: tokens that
  a clone was given would have 0."""
  plain = toy.trajectories(
    np.ones((1, 1)), group_size=1, logp_behaviour_BT=np.array([[-0.5]])
  )
  traj = join_groups(plain, plain, jnp.array([True]))
  stats = {'logp': jnp.full((2, 1), -2.0), 'entropy': jnp.zeros((2, 1))}

  def score(traj):
    return score_lib.with_scores(traj, stats)

  assert score(traj)[0].logp_old_BT.ravel().tolist() == [-2.0, -0.5]
  collector = types.SimpleNamespace(
    task=None,
    key=None,
    prompts=types.SimpleNamespace(tokenizer=None),
    row_inputs=len,
    selector=types.SimpleNamespace(memory=None),
    jitted=jax.jit,
  )
  sampler = Sampler(collector, None, 0, 0, score)
  assert sampler.logp(traj).ravel().tolist() == [-2.0, -2.0]
