"""References for methods: supervised training and best-of-n at equal cost.

Each function returns lines in the format of a sweep's results.jsonl.
"""

from collections import Counter
from collections.abc import Sequence
import dataclasses
import os
from typing import Any

import jax
import numpy as np

from experiments.flags import configuration
from experiments.sweeps import runs as sweep_runs
from rl_jax import randomness
from rl_jax.config import ExperimentConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.records import metrics
from rl_jax.rollouts import sampling
from rl_jax.rollouts.generate import generate
from rl_jax.rollouts.stop import make_stop
from rl_jax.runs import loop
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.scanned import prompts as scanned_prompts
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import base

RATE = 'optimizer.learning_rate'


def supervised(
  config: ExperimentConfig,
  seeds: Sequence[int],
  rates: Sequence[float],
  workdir: str,
) -> list[dict[str, Any]]:
  """Cross entropy on the answers of the training prompts, runs in workdir.

  As many rows an iteration and a step as the runs have, with their optimizer
  and evaluations; seeds differ only in the order of prompts.
  """
  group, update = config.rollout.group_size, config.update
  size = config.rollout.num_prompts * group
  step = (update.minibatch_prompts or config.rollout.num_prompts) * group
  config = dataclasses.replace(
    configuration.supervised(config, size),
    update=UpdateConfig(minibatch_prompts=step),
  )
  lines = []
  for rate in rates:
    optimizer = dataclasses.replace(config.optimizer, learning_rate=rate)
    for seed in seeds:
      run = dataclasses.replace(config, seed=seed, optimizer=optimizer)
      name = os.path.join(workdir, f'supervised-{rate}-{seed}')
      loop.Trainer(run, name).run()
      rows = metrics.read_jsonl(os.path.join(name, metrics.METRICS))
      lines.append(_supervised_line(rows, size, rate, seed))
  return lines


def _supervised_line(rows, size, rate, seed):
  """The line of a run with so many rows an iteration."""
  curve: dict[str, list] = {'tokens': [], 'pass_at_1': []}
  tokens, seconds = 0, []
  for row in rows:
    if row['step']:
      tokens += round(row['rollout/length'] * size)
      seconds.append(row['time/iteration_seconds'])
    if 'evaluation/pass_at_1' in row:
      curve['tokens'].append(tokens)
      curve['pass_at_1'].append(round(row['evaluation/pass_at_1'], 4))
  return _line(
    'supervised (reference)',
    {RATE: rate, 'seed': seed},
    tokens=tokens,
    seconds=sum(seconds),
    iteration_seconds=float(np.median(seconds)),
    held_out=curve,
  )


def best_of_n(
  config: ExperimentConfig, seeds: Sequence[int]
) -> list[dict[str, Any]]:
  """Accuracy of the initial policy with as many samples as a run draws.

  n = iterations * prompts * group size / evaluated prompts. Three rows: greedy;
  right if one of n samples is (needs a verifier at test time); right if the
  most frequent of n texts is (needs none).
  """
  mesh = mesh_lib.make_mesh(config.mesh, jax.devices()[:1])
  rollout, count = config.rollout, config.evaluation.num_prompts
  drawn = config.iterations * rollout.num_prompts * rollout.group_size
  n, lines = drawn // count, []
  with jax.set_mesh(mesh):
    policy = policy_lib.load(config.model, config.task, 0, mesh)
    params = {**policy.frozen, **policy.trainable}
    held_out = scanned_prompts.encode(
      config, policy.tokenizer, 'validation', count
    )
    stop = make_stop(policy.tokenizer, rollout.stop)

    def judged(key, group_size, greedy):
      how = sampling.SamplingConfig.ended_by(
        stop, temperature=rollout.temperature, greedy=greedy
      )
      traj = generate(
        params,
        policy.model,
        held_out.start(group_size, rollout.max_response_tokens, 0, 0),
        randomness.purpose_key(key, randomness.EVALUATION),
        how,
        max_new_tokens=rollout.max_response_tokens,
      )
      right = held_out.rewards(config.task, policy.tokenizer, traj)
      return traj.response_BT, traj.length_B, right[base.OUTCOME]

    judged = jax.jit(judged, static_argnums=(1, 2))
    right_N = np.asarray(judged(jax.random.key(0), 1, True)[2])
    lines.append(_answers('warm start, greedy (reference)', 0, 0, right_N))
    for seed in seeds:
      found = jax.device_get(judged(jax.random.key(seed), n, False))
      one_N, most_N = of_n(*found, n)
      tokens = int(found[1].sum())
      for name, right_N in (
        (f'warm start, best of {n} (reference)', one_N),
        (f'warm start, majority of {n} (reference)', most_N),
      ):
        lines.append(_answers(name, seed, tokens, right_N))
  return lines


def of_n(response_BT, length_B, right_B, n: int):
  """(one of n is right, most frequent is right) [N]; ties: first drawn."""
  texts = [
    tuple(row[:length])
    for row, length in zip(response_BT.tolist(), length_B, strict=True)
  ]
  right_NG = np.asarray(right_B).reshape(-1, n)
  most = []
  for i, right_G in enumerate(right_NG):
    own = texts[i * n : (i + 1) * n]
    most.append(right_G[own.index(Counter(own).most_common(1)[0][0])])
  return right_NG.max(axis=1), np.array(most)


def _answers(name, seed, tokens, right_N):
  """A line with one evaluation: nothing is trained."""
  curve = {'tokens': [tokens], 'pass_at_1': [round(float(right_N.mean()), 4)]}
  return _line(name, {'seed': seed}, tokens=tokens, held_out=curve)


def _line(method: str, setting: dict[str, Any], **numbers: Any):
  """A line of results.jsonl."""
  setting = {'method': method, **setting}
  return sweep_runs.environment() | {
    'digest': None,
    'name': '-'.join(f'{v}' for v in setting.values()),
    'setting': setting,
    **numbers,
  }
