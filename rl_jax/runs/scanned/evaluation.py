"""The measurements of `evaluation.Evaluator` as a function of parameters."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.config import ExperimentConfig, evaluated_tokens
from rl_jax.decoding.stop import make_stop
from rl_jax.models import transformer
from rl_jax.pieces.ops.masking import by_group
from rl_jax.runs.evaluation import evaluation_metrics, sampling_of
from rl_jax.runs.scanned import responses
from rl_jax.runs.scanned.prompts import Prompts
from rl_jax.tasks import base
from rl_jax.types import Metrics

SEED = 0  # of the samples: the Evaluator's, whatever the seed of the run


@dataclasses.dataclass(frozen=True)
class JittedEvaluation:
  """Greedy and sampled accuracy on held-out prompts, in one batch.

  Losses of held-out recorded rows (runs.held_out) are measured in the loop.
  """

  config: ExperimentConfig
  model: transformer.ModelConfig
  tokenizer: Any

  def __call__(self, prompts: Prompts, params: Any) -> Metrics:
    """The Evaluator's metrics by its names, with `evaluation/` in front."""
    stop = make_stop(self.tokenizer, self.config.rollout.stop)
    drawn = sampling_of(self.config).replace(
      eos_ids=stop.ids, stop_SV=stop.table
    )
    greedy = drawn.replace(greedy=True, temperature=1.0)
    judged_N1 = self._judged(prompts, params, 1, greedy)
    judged_NK, samples = None, self.config.evaluation.num_samples
    if samples:
      judged_NK = self._judged(prompts, params, samples, drawn)
    found = evaluation_metrics(judged_N1, judged_NK)
    return {f'evaluation/{name}': jnp.asarray(x) for name, x in found.items()}

  def _judged(self, prompts, params, group_size, how):
    """Arrays [N, G] of the responses, see evaluation_metrics."""
    tokens = evaluated_tokens(self.config)
    key = randomness.purpose_key(jax.random.key(SEED), randomness.EVALUATION)
    # The counter of randomness is the position in the evaluation set.
    start = prompts.start(group_size, tokens, 0, 0)
    static = (self.config, self.model, self.tokenizer, how)
    traj, rewards = responses.sampled(*static, prompts, params, start, key)
    weights = self.config.task.reward_weights
    judged = {
      **{f'reward/{name}': x for name, x in rewards.items()},
      'reward/mean': base.combine(rewards, weights),
      'length': traj.length_B.astype(jnp.float32),
      'finished': traj.finished_B.astype(jnp.float32),
      'sampled': traj.mask_BT.sum(axis=1),
      'logp': traj.logp_behaviour_BT.sum(axis=1),
    }
    return {name: by_group(x, group_size) for name, x in judged.items()}
