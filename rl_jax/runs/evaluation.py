"""Accuracy of a policy on a split: pass@1 greedy, avg@k, pass@k, length."""

from collections.abc import Callable, Sequence
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.config import EvaluationConfig
from rl_jax.rollouts.engine import Engine
from rl_jax.rollouts.prompts import PromptSet, stop_ids
from rl_jax.rollouts.responses import (
  Texts,
  fetch_responses,
  own_rows,
)
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.rollouts.verifiers import TextVerifier, TokenVerifier
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
  """Unbiased estimate of P(at least one of k samples is correct).

  1 - C(n - c, k) / C(n, k)   (Chen et al. 2021, arXiv:2107.03374, eq. 1)
  """
  if not 1 <= k <= num_samples:
    raise ValueError(f'k = {k} is outside [1, {num_samples}]')
  wrong = num_samples - num_correct
  return 1.0 - math.comb(wrong, k) / math.comb(num_samples, k)


def evaluation_metrics(
  greedy: dict[str, Any], samples: dict[str, Any] | None
) -> dict[str, Any]:
  """Metrics of one evaluation, of NumPy or (traced) JAX arrays alike.

  Args:
    greedy: arrays [n, 1] `outcome`, `length`, `finished`, a response a prompt.
    samples: the same [n, k] of drawn responses, and `logp`, the sum over their
      tokens; None if none were drawn.

  Returns:
    pass_at_1, length, truncated_fraction and n of the greedy responses; of the
    samples avg_at_k, pass_at_j for j = 2, 4, ..., k, sample_length,
    sample_truncated_fraction, and entropy: the mean of -logp of drawn tokens,
    an unbiased estimate in nats.
  """
  metrics = {
    'pass_at_1': greedy['outcome'].mean(),
    'length': greedy['length'].mean(),
    'truncated_fraction': 1.0 - greedy['finished'].mean(),
    'n': len(greedy['outcome']),
  }
  if samples is None:
    return metrics
  outcome = samples['outcome']
  k = outcome.shape[1]
  return metrics | {
    f'avg_at_{k}': outcome.mean(),
    'entropy': -samples['logp'].sum() / samples['length'].sum(),
    'sample_length': samples['length'].mean(),
    'sample_truncated_fraction': 1.0 - samples['finished'].mean(),
    **_pass_at_powers(outcome),
  }


def _pass_at_powers(correct_NK):
  """pass@j for j = 2, 4, ... and k."""
  k, metrics, j = correct_NK.shape[1], {}, 1
  count_N = correct_NK.sum(axis=1).astype(np.int32)
  while j < k:
    j = min(2 * j, k)
    by_count = np.asarray([pass_at_k(k, c, j) for c in range(k + 1)])
    if isinstance(count_N, jax.Array):
      by_count = jnp.asarray(by_count, jnp.float32)
    metrics[f'pass_at_{j}'] = by_count[count_N].mean()
  return metrics


class Evaluator:
  """Samples and verifies a fixed set of prompts; compiled once per shape."""

  def __init__(
    self,
    engine: Callable[..., Engine],
    prompts: PromptSet,
    verifier: TextVerifier | TokenVerifier,
    settings: EvaluationConfig,
    *,
    temperature: float = 1.0,
    stop: Sequence[str] = (),
    seed: int = 0,
  ):
    """engine: make_engine with all but the sampling and the group size."""
    self._tokenizer, self._prompts = prompts.tokenizer, prompts
    self._verifier = verifier
    self._indices = range(min(settings.num_prompts, len(prompts)))
    self._num_samples = settings.num_samples
    self._stop = eos = stop_ids(prompts.tokenizer, stop)
    self._greedy = engine(
      SamplingConfig(greedy=True, eos_ids=eos), group_size=1
    )
    self._sample = engine(
      SamplingConfig(temperature=temperature, eos_ids=eos),
      group_size=self._num_samples,
    )
    mesh = self._greedy.mesh
    self._key = processes.put(
      randomness.purpose_key(jax.random.key(seed), randomness.EVALUATION),
      mesh_lib.replicated(mesh),
    )
    shards = mesh.shape['data'] * mesh.shape['fsdp']
    self._batch = -(-settings.batch_prompts // shards) * shards

  def run(self, params: Any) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(metrics, per-prompt arrays 'greedy' [n] and 'samples' [n, k])."""
    indices, num_samples = self._indices, self._num_samples
    greedy = self._collect(params, indices, 1, self._greedy)
    rows, samples = {'greedy': greedy['outcome'][:, 0]}, None
    if num_samples:
      samples = self._collect(params, indices, num_samples, self._sample)
      rows['samples'] = samples['outcome']
    metrics = evaluation_metrics(greedy, samples)
    # As Python numbers; the count `n` stays an integer.
    metrics = {name: np.asarray(x).item() for name, x in metrics.items()}
    return metrics, rows

  def _collect(self, params, indices, group_size, engine):
    """Per-prompt arrays [n, group_size] over batches of fixed width."""
    parts = []
    for start in range(0, len(indices), self._batch):
      real = list(indices[start : start + self._batch])
      padded = real + [real[0]] * (self._batch - len(real))
      examples, prompt, mask, ids = self._prompts.batch(padded)
      # The counter of randomness is the position in the evaluation set.
      traj = engine.start(prompt, mask, ids, start, 0)
      traj = engine.generate(params, traj=traj, key=self._key)
      host = fetch_responses(traj, len(real))
      own = own_rows(len(real), group_size)
      texts = Texts(host, own, self._tokenizer, self._stop)
      logp = host['logp'].sum(axis=1).tolist()
      logp = [x for part in processes.gather(logp) for x in part]
      real_examples = examples[: len(real)]
      outcomes = self._verifier.outcomes(traj, real_examples, texts)
      shape = (len(real), group_size)
      correct = [
        0.0 if o.components is None else o.components[base.OUTCOME]
        for o in outcomes
      ]
      count = len(real) * group_size
      parts.append(
        {
          'outcome': np.asarray(correct).reshape(shape),
          'length': host['length'][:count].reshape(shape),
          'finished': host['finished'][:count].reshape(shape),
          'logp': np.asarray(logp, np.float32).reshape(shape),
        }
      )
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
