"""Accuracy of a policy on a split: pass@1 greedy, avg@k, pass@k, length."""

from collections.abc import Callable, Mapping, Sequence
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.decoding.engine import Engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episodes import EpisodeRunner
from rl_jax.judging.judges import NO_JUDGES, Judges
from rl_jax.judging.verifiers import TextVerifier, TokenVerifier
from rl_jax.measures import best_of, consensus
from rl_jax.pieces.logits import TopK, TopP
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.responses import (
  Texts,
  fetch_responses,
  own_rows,
)
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base

OUTCOME = f'reward/{base.OUTCOME}'


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
  """Unbiased estimate of P(at least one of k samples is correct).

  1 - C(n - c, k) / C(n, k)   (Chen et al. 2021, arXiv:2107.03374, eq. 1)
  """
  if not 1 <= k <= num_samples:
    raise ValueError(f'k = {k} is outside [1, {num_samples}]')
  wrong = num_samples - num_correct
  return 1.0 - math.comb(wrong, k) / math.comb(num_samples, k)


def sampling_of(config: ExperimentConfig) -> SamplingConfig:
  """Temperature and transforms of drawn responses, see EvaluationConfig."""
  settings, transforms = config.evaluation, config.method.logits
  if (settings.top_k, settings.top_p) != (None, None):
    transforms = ()
  if settings.top_k is not None:
    transforms += (TopK(k=settings.top_k),)
  if settings.top_p is not None and settings.top_p < 1.0:
    transforms += (TopP(p=settings.top_p),)
  transforms += settings.transforms
  temperature = settings.temperature
  if temperature is None:
    temperature = config.rollout.temperature
  return SamplingConfig(temperature=temperature, transforms=transforms)


def evaluation_metrics(
  greedy: dict[str, Any], samples: dict[str, Any] | None
) -> dict[str, Any]:
  """Metrics of one evaluation, of NumPy or (traced) JAX arrays alike.

  A response that the verifier failed to judge counts in reward_errors and in
  no mean of rewards: these are over the responses that were judged, pass_at_j
  over the prompts with j judged samples at least. NaN if there are none.

  Args:
    greedy: arrays [n, 1] `length`, `finished` and by `reward/NAME` the
      components and their weighted sum `reward/mean`, a response a prompt; NaN
      where a response was not judged.
    samples: the same [n, k] of drawn responses, `sampled`, how many of their
      tokens were drawn, and `logp`, the sum over these; None if there are none.

  Returns:
    pass_at_1 (the mean outcome), the means by `reward/NAME`, length,
    truncated_fraction and n of the greedy responses; of the samples avg_at_k,
    pass_at_j for j = 2, 4, ..., k, the means by `sample_reward/NAME`,
    sample_length, sample_truncated_fraction, and entropy: the mean of -logp of
    drawn tokens, an unbiased estimate in nats; with votes (see best_of) also
    borda_at_k, majority_at_k and certain_at_k. reward_errors of both.
  """
  metrics = {
    'pass_at_1': _mean(greedy[OUTCOME]),
    'length': greedy['length'].mean(),
    'truncated_fraction': 1.0 - greedy['finished'].mean(),
    'n': len(greedy[OUTCOME]),
    'reward_errors': _errors(greedy[OUTCOME]),
    **_means(greedy, ''),
  }
  if samples is None:
    return metrics
  outcome = samples[OUTCOME]
  metrics['reward_errors'] += _errors(outcome)
  k = outcome.shape[1]
  votes = {n: x for n, x in samples.items() if n.startswith('vote/')}
  return metrics | {
    f'avg_at_{k}': _mean(outcome),
    **{f'{n[len("vote/") :]}_at_{k}': _mean(x) for n, x in votes.items()},
    'entropy': -samples['logp'].sum() / samples['sampled'].sum(),
    'sample_length': samples['length'].mean(),
    'sample_truncated_fraction': 1.0 - samples['finished'].mean(),
    **_means(samples, 'sample_'),
    **_pass_at_powers(outcome),
  }


def _errors(reward):
  return 0 if isinstance(reward, jax.Array) else int(np.isnan(reward).sum())


def _mean(reward):
  """The mean over what was judged; device verifiers judge everything."""
  if not isinstance(reward, jax.Array):
    reward = reward[~np.isnan(reward)]
  return reward.mean() if reward.size else np.nan


def _means(arrays, prefix):
  rewards = {k: x for k, x in arrays.items() if k.startswith('reward/')}
  return {f'{prefix}{name}': _mean(x) for name, x in sorted(rewards.items())}


def _pass_at_powers(outcome_NK):
  """pass@j for j = 2, 4, ... and k; an outcome above 1/2 is right."""
  k, metrics, j = outcome_NK.shape[1], {}, 1
  traced = isinstance(outcome_NK, jax.Array)
  count_N = (outcome_NK > 0.5).sum(axis=1)
  judged_N = count_N if traced else (~np.isnan(outcome_NK)).sum(axis=1)
  while j < k:
    j = min(2 * j, k)
    if traced:
      by_count = [pass_at_k(k, c, j) for c in range(k + 1)]
      found = jnp.asarray(by_count, jnp.float32)[count_N]
    else:
      pairs = zip(judged_N.tolist(), count_N.tolist(), strict=True)
      found = np.asarray([pass_at_k(n, c, j) for n, c in pairs if n >= j])
    metrics[f'pass_at_{j}'] = found.mean() if found.size else np.nan
  return metrics


MakeEngine = Callable[[SamplingConfig, int, int | None], Engine]


class Evaluator:
  """Samples and verifies fixed sets of prompts; compiled once per shape.

  Metrics of a set with a name, and of a part of a mixture, have the name before
  them: NAME/pass_at_1.
  """

  def __init__(
    self,
    engine: MakeEngine,
    prompts: PromptSet | Mapping[str, PromptSet],
    runner: TextVerifier | TokenVerifier | EpisodeRunner,
    settings: EvaluationConfig,
    *,
    sampling: SamplingConfig | None = None,
    stop: Sequence[str] = (),
    judges: Judges = NO_JUDGES,
    seed: int = 0,
  ):
    """engine: (sampling, rows of a prompt, beams or None) -> the engine.

    prompts: one set, or sets by name; '' has none.
    sampling: temperature and transforms, see `sampling_of`; greedy responses
    have the transforms.
    judges: add their components; pairs of one greedy response are 1/2.
    """
    self._judges = judges
    sets = prompts if isinstance(prompts, Mapping) else {'': prompts}
    self._sets, self._num_prompts = sets, settings.num_prompts
    prompts = next(iter(sets.values()))
    self._runner = runner
    # (self-certainty of rows by (params, traj), power), for votes of samples.
    self.votes: tuple[Callable, float] | None = None
    self._num_samples = settings.num_samples
    self._consensus = settings.consensus
    self._stop = make_stop(prompts.tokenizer, tuple(stop))
    sampling = (sampling or SamplingConfig()).replace(
      eos_ids=self._stop.ids, stop_SV=self._stop.table
    )
    self._greedy = engine(
      sampling.replace(greedy=True, temperature=1.0), 1, settings.beams
    )
    self._sample = engine(sampling, self._num_samples, None)
    mesh = self._greedy.mesh
    self._key = processes.put(
      randomness.purpose_key(jax.random.key(seed), randomness.EVALUATION),
      mesh_lib.replicated(mesh),
    )
    shards = mesh.shape['data'] * mesh.shape['fsdp']
    most = min(settings.num_prompts, max(map(len, sets.values())))
    batch = min(settings.batch_prompts, most)
    self._batch = -(-batch // shards) * shards

  def run(self, params: Any) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(metrics, of prompts: 'greedy' [n], 'samples' [n, k], 'responses' [n]).

    The first two are outcomes, NaN of a response that was not judged; the last
    are the texts of the greedy ones. With drafts the metrics have
    accepted_length and sample_accepted_length, over all sets.
    """
    metrics, rows, by_set = {}, {}, {}
    judges = self._judges.of_evaluation(params)
    for name, prompts in self._sets.items():
      before = f'{name}/' * bool(name)
      greedy, parts = self._collect(params, prompts, 1, self._greedy, judges)
      samples = None
      rows[f'{before}greedy'] = greedy[OUTCOME][:, 0]
      rows[f'{before}responses'] = greedy['response'][:, 0]
      by_set[name] = greedy
      if self._num_samples:
        samples, _ = self._collect(
          params, prompts, self._num_samples, self._sample, judges
        )
        rows[f'{before}samples'] = samples[OUTCOME]
      found = evaluation_metrics(greedy, samples)
      for part in sorted(set(parts) - {None}):
        own = np.asarray([x == part for x in parts])
        of_part = evaluation_metrics(
          _rows_of(own, greedy),
          None if samples is None else _rows_of(own, samples),
        )
        found |= {f'{part}/{key}': x for key, x in of_part.items()}
      metrics |= {f'{before}{key}': x for key, x in found.items()}
    if self._consensus:
      found = consensus.metrics([by_set[name] for name in self._consensus])
      metrics |= {f'consensus/{key}': x for key, x in found.items()}
    for before, engine in (('', self._greedy), ('sample_', self._sample)):
      found = processes.read(engine.drafts.metrics())
      metrics |= {
        before + key.removeprefix('rollout/'): x for key, x in found.items()
      }
    # As Python numbers; counts stay integers.
    return {key: np.asarray(x).item() for key, x in metrics.items()}, rows

  def _collect(self, params, prompts, group_size, engine, judges):
    """Per-prompt arrays [n, group_size], part of a mixture or None by prompt.

    Batches have a fixed width.
    """
    indices, names = range(min(self._num_prompts, len(prompts))), []
    parts, judged = [], []
    for start in range(0, len(indices), self._batch):
      real = list(indices[start : start + self._batch])
      padded = real + [real[0]] * (self._batch - len(real))
      examples, prompt, mask, ids = prompts.batch(padded)
      # The counter of randomness is the position in the evaluation set.
      count = len(real) * prompts.players
      traj = engine.start(prompt, mask, ids, start * prompts.players, 0)
      traj = self._runner.play(engine, params, traj, self._key, examples)
      host = fetch_responses(traj, count)
      own = own_rows(count, group_size)
      texts = Texts(host, own, self._stop)
      logp = host['logp'].sum(axis=1).tolist()
      logp = [x for part in processes.gather(logp) for x in part]
      real_examples = examples[:count]
      names += [example.meta.get(base.PART) for example in real_examples]
      outcomes = self._runner.outcomes(traj, real_examples, texts)
      said = self._runner.said(texts, own)
      outcomes = judges.add(outcomes, real_examples, said, group_size)
      judged += [outcome.components for outcome in outcomes]
      count *= group_size
      parts.append(
        {
          'length': host['length'][:count],
          'sampled': host['sampled'][:count],
          'finished': host['finished'][:count],
          'logp': np.asarray(logp, np.float32),
        }
      )
      if engine is self._greedy:
        said = [x for part in processes.gather(list(texts)) for x in part]
        parts[-1]['response'] = np.asarray(said, object)
      if self.votes is not None and engine is self._sample:
        keys = processes.gather(best_of.keys_of(texts))
        certainty_B = processes.read(self.votes[0](params, traj))
        parts[-1] |= {
          'text': np.asarray([key for part in keys for key in part]),
          'certainty': certainty_B[:count],
        }
    arrays = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    weights = {**prompts.task.reward_weights, **judges.weights}
    arrays |= _rewards(judged, weights)
    shape = (len(indices) * prompts.players, group_size)
    arrays = {name: x.reshape(shape) for name, x in arrays.items()}
    if self.votes is not None and 'certainty' in arrays:
      arrays |= best_of.outcomes(arrays, self.votes[1])
    return arrays, names


def _rewards(judged, weights):
  """reward/NAME: of each response; a component that it lacks counts 0."""
  names = {base.OUTCOME, *weights, *(n for c in judged if c for n in c)}
  rows = [
    None if c is None else {**c, 'mean': base.combine(c, weights)}
    for c in judged
  ]
  return {
    f'reward/{name}': np.asarray(
      [np.nan if c is None else c.get(name, 0.0) for c in rows]
    )
    for name in (*sorted(names), 'mean')
  }


def _rows_of(own, arrays):
  return {name: x[own] for name, x in arrays.items()}
