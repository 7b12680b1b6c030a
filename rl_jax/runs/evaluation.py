"""Accuracy of a policy on a split: pass@1 greedy, avg@k, pass@k, length."""

from collections.abc import Sequence
import functools
import math
from typing import Any
import zlib

import jax
import numpy as np

from rl_jax import randomness
from rl_jax.models import transformer
from rl_jax.rollouts import sampling
from rl_jax.rollouts.generate import generate
from rl_jax.rollouts.prompts import PromptSet, stop_ids
from rl_jax.rollouts.start import make_start
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.types import Trajectories
from rl_jax.verification.pool import Outcome


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
  """Unbiased estimate of P(at least one of k samples is correct).

  1 - C(n - c, k) / C(n, k)   (Chen et al. 2021, arXiv:2107.03374, eq. 1)
  """
  if not 1 <= k <= num_samples:
    raise ValueError(f'k = {k} is outside [1, {num_samples}]')
  wrong = num_samples - num_correct
  return 1.0 - math.comb(wrong, k) / math.comb(num_samples, k)


def decode_responses(
  traj_host: Any, tokenizer: Any, stop: Sequence[int]
) -> list[str]:
  """Text of every row without the token of `stop` that ended it."""
  texts = []
  for row, length in zip(
    traj_host['response'], traj_host['length'], strict=True
  ):
    ids = [int(t) for t in row[:length]]
    if ids and ids[-1] in stop:
      ids = ids[:-1]
    texts.append(tokenizer.decode(ids))
  return texts


def own_rows(num_prompts: int, group_size: int) -> slice:
  """The rows of the prompts that this process decodes and verifies."""
  own = processes.own(num_prompts)
  return slice(own.start * group_size, own.stop * group_size)


def fetch_responses(
  traj: Trajectories, num_prompts: int
) -> dict[str, np.ndarray]:
  """The host read of a generation round; there may be more prompts.

  response, logp: of this process' own rows of the first num_prompts. length,
  finished: of all rows, two numbers each.
  """
  every = {'length': traj.length_B, 'finished': traj.finished_B}
  own = {'response': traj.response_BT, 'logp': traj.logp_behaviour_BT}
  rows = own_rows(num_prompts, traj.group_size)
  if processes.count() == 1:  # in one read
    host = processes.read(every | own)
    return host | {name: host[name][rows] for name in own}
  return processes.read(every) | processes.fetch_rows(own, rows)


class Texts(Sequence):
  """The texts of own rows, each decoded when it is first asked for."""

  def __init__(
    self,
    host: dict[str, np.ndarray],
    own: slice,
    tokenizer: Any,
    stop: Sequence[int],
  ):
    self._host = {'response': host['response'], 'length': host['length'][own]}
    self._options = (tokenizer, stop)
    self._known: dict[int, str] = {}

  def __len__(self) -> int:
    return len(self._host['length'])

  def __getitem__(self, row: int) -> str:
    if row not in self._known:
      if not 0 <= row < len(self):
        raise IndexError(row)
      one = {name: x[row : row + 1] for name, x in self._host.items()}
      (self._known[row],) = decode_responses(one, *self._options)
    return self._known[row]


def verify_own(
  verifier: Any, examples: Sequence[Any], texts: Texts, group_size: int
) -> list[Outcome]:
  """Outcomes of all rows of `examples`; texts: of this process' own rows.

  Each process decodes and judges the rows of its own prompts.
  """
  own = own_rows(len(examples), group_size)
  rows = range(own.start, own.stop)
  outcomes = verifier.score(
    [examples[row // group_size] for row in rows], list(texts)
  )
  if processes.count() == 1:
    return outcomes
  ids = zlib.crc32(repr([e.id for e in examples]).encode())
  mine = [[o.components, o.kind, o.detail] for o in outcomes]
  parts = processes.gather([ids, mine])
  if any(other != ids for other, _ in parts):
    raise RuntimeError(
      'the processes drew different prompts: is the data the same on all hosts?'
    )
  return [Outcome(*o) for _, part in parts for o in part]


class Evaluator:
  """Samples and verifies a fixed set of prompts; compiled once per shape."""

  def __init__(
    self,
    *,
    model: transformer.ModelConfig,
    tokenizer: Any,
    prompts: PromptSet,
    verifier: Any,
    mesh: jax.sharding.Mesh,
    max_new_tokens: int,
    num_prompts: int,
    num_samples: int = 0,
    temperature: float = 1.0,
    stop: Sequence[str] = (),
    seed: int = 0,
    batch_prompts: int = 128,
  ):
    self._tokenizer, self._prompts = tokenizer, prompts
    self._verifier = verifier
    self._indices = range(min(num_prompts, len(prompts)))
    self._num_samples = num_samples
    self._key = processes.put(
      randomness.purpose_key(jax.random.key(seed), randomness.EVALUATION),
      mesh_lib.replicated(mesh),
    )
    shards = mesh.shape['data'] * mesh.shape['fsdp']
    self._batch = -(-batch_prompts // shards) * shards
    self._stop = eos = stop_ids(tokenizer, stop)

    def stages(group_size, config):
      sample = functools.partial(
        generate, cfg=model, sampling=config, max_new_tokens=max_new_tokens
      )
      return (
        make_start(mesh, group_size, max_new_tokens),
        jax.jit(sample, out_shardings=mesh_lib.replicated(mesh)),
      )

    self._greedy = stages(1, sampling.SamplingConfig(greedy=True, eos_ids=eos))
    self._sample = stages(
      num_samples,
      sampling.SamplingConfig(temperature=temperature, eos_ids=eos),
    )

  def run(self, params: Any) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(metrics, per-prompt arrays 'greedy' [n] and 'samples' [n, k])."""
    indices, num_samples = self._indices, self._num_samples
    greedy = self._collect(params, indices, 1, *self._greedy)
    metrics = {
      'pass_at_1': float(np.mean(greedy['outcome'])),
      'length': float(np.mean(greedy['length'])),
      'truncated_fraction': 1.0 - float(np.mean(greedy['finished'])),
      'n': len(indices),
    }
    rows = {'greedy': greedy['outcome'][:, 0]}
    if num_samples:
      samples = self._collect(params, indices, num_samples, *self._sample)
      correct = samples['outcome'].sum(axis=1).astype(int)
      metrics |= {
        f'avg_at_{num_samples}': float(np.mean(samples['outcome'])),
        # Mean of -logp of sampled tokens: an unbiased entropy estimate.
        'entropy': float(-samples['logp'].sum() / samples['length'].sum()),
        'sample_length': float(np.mean(samples['length'])),
        'sample_truncated_fraction': 1.0 - float(np.mean(samples['finished'])),
      }
      k = 1
      while k < num_samples:
        k = min(2 * k, num_samples)
        metrics[f'pass_at_{k}'] = float(
          np.mean([pass_at_k(num_samples, c, k) for c in correct])
        )
      rows['samples'] = samples['outcome']
    return metrics, rows

  def _collect(self, params, indices, group_size, begin, generate):
    """Per-prompt arrays [n, group_size] over batches of fixed width."""
    parts = []
    for start in range(0, len(indices), self._batch):
      real = list(indices[start : start + self._batch])
      padded = real + [real[0]] * (self._batch - len(real))
      examples, prompt, mask, ids = self._prompts.batch(padded)
      # The counter of randomness is the position in the evaluation set.
      traj = begin(prompt, mask, ids, start, 0)
      traj = generate(params, traj=traj, key=self._key)
      host = fetch_responses(traj, len(real))
      own = own_rows(len(real), group_size)
      texts = Texts(host, own, self._tokenizer, self._stop)
      logp = host['logp'].sum(axis=1).tolist()
      logp = [x for part in processes.gather(logp) for x in part]
      real_examples = examples[: len(real)]
      outcomes = verify_own(self._verifier, real_examples, texts, group_size)
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
