"""What `evaluate.Evaluator` measures, as a pure function of the parameters."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.config import ExperimentConfig
from rl_jax.models import transformer
from rl_jax.rollouts import sampling
from rl_jax.rollouts.generate import generate
from rl_jax.rollouts.prompts import stop_ids
from rl_jax.runs.evaluation import pass_at_k
from rl_jax.runs.scanned.prompts import Prompts
from rl_jax.tasks import base
from rl_jax.types import Metrics, Trajectories

SEED = 0  # of the samples: the Evaluator's, whatever the seed of the run


@dataclasses.dataclass(frozen=True)
class JittedEvaluation:
  """Greedy and sampled accuracy on held-out prompts, in one batch."""

  config: ExperimentConfig
  model: transformer.ModelConfig
  tokenizer: Any

  def __call__(self, prompts: Prompts, params: Any) -> Metrics:
    """The Evaluator's metrics by its names, with `evaluation/` in front."""
    stop = stop_ids(self.tokenizer, self.config.rollout.stop)
    greedy = sampling.SamplingConfig(greedy=True, eos_ids=stop)
    traj, correct_N1 = self._judged(prompts, params, 1, greedy)
    found = {
      'pass_at_1': correct_N1.mean(),
      'length': traj.length_B.astype(jnp.float32).mean(),
      'truncated_fraction': 1.0 - traj.finished_B.astype(jnp.float32).mean(),
    }
    samples = self.config.evaluation.num_samples
    if samples:
      temperature = self.config.rollout.temperature
      drawn = sampling.SamplingConfig(temperature=temperature, eos_ids=stop)
      traj, correct_NG = self._judged(prompts, params, samples, drawn)
      length_B = traj.length_B.astype(jnp.float32)
      logp = traj.logp_behaviour_BT.sum()
      found |= {
        f'avg_at_{samples}': correct_NG.mean(),
        'entropy': -logp / length_B.sum(),
        'sample_length': length_B.mean(),
        **_pass_at_powers(correct_NG),
      }
    return {f'evaluation/{name}': value for name, value in found.items()}

  def _judged(self, prompts, params, group_size, how):
    """(responses, outcome f32[N, G])."""
    rollout = self.config.rollout
    sample = functools.partial(
      generate,
      cfg=self.model,
      sampling=how,
      max_new_tokens=rollout.max_response_tokens,
    )
    key = randomness.purpose_key(jax.random.key(SEED), randomness.EVALUATION)
    # The counter of randomness is the position in the evaluation set.
    start = prompts.start(group_size, rollout.max_response_tokens, 0, 0)
    traj: Trajectories = sample(params, traj=start, key=key)
    rewards = prompts.rewards(self.config.task, self.tokenizer, traj)
    return traj, rewards[base.OUTCOME].reshape(-1, group_size)


def _pass_at_powers(correct_NG: jax.Array) -> Metrics:
  """pass@k for k = 2, 4, ... and the number of samples."""
  total, found, k = correct_NG.shape[1], {}, 1
  count_N = correct_NG.sum(axis=1).astype(jnp.int32)
  while k < total:
    k = min(2 * k, total)
    by_count = [pass_at_k(total, c, k) for c in range(total + 1)]
    found[f'pass_at_{k}'] = jnp.asarray(by_count)[count_N].mean()
  return found
