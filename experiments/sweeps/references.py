"""References for methods: supervised training and best-of-n at equal cost.

Each function returns lines in the format of a sweep's results.jsonl.
"""

from collections import Counter
from collections.abc import Sequence
import dataclasses
import functools
import time
from typing import Any

import jax
import numpy as np

from experiments.sweeps import runs as sweep_runs
from rl_jax import randomness
from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.rollouts import prompts as prompts_lib
from rl_jax.rollouts import sampling
from rl_jax.rollouts.generate import generate
from rl_jax.rollouts.stop import make_stop
from rl_jax.runs import policy as policy_lib
from rl_jax.runs import supervised_fit
from rl_jax.runs.scanned import evaluation as scanned_evaluation
from rl_jax.runs.scanned import prompts as scanned_prompts
from rl_jax.runs.supervised import SupervisedTrainer, shuffled_batches
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import base

RATE = 'optimizer.learning_rate'


def supervised(
  config: ExperimentConfig,
  seeds: Sequence[int],
  rates: Sequence[float],
  budget: int,
) -> list[dict[str, Any]]:
  """Cross entropy on the answers of the training prompts, `budget` tokens.

  The optimizer, the rows per step and the evaluations are those of the runs;
  seeds differ only in the order of prompts.
  """
  mesh = mesh_lib.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    policy = policy_lib.load(config.model, config.task, 0, mesh)
    held_out = scanned_prompts.encode(
      config, policy.tokenizer, 'validation', config.evaluation.num_prompts
    )
    judge = scanned_evaluation.JittedEvaluation(
      config, policy.model, policy.tokenizer
    )
    evaluate = jax.jit(functools.partial(judge, held_out))
    return [
      _supervised_run(config, policy, mesh, evaluate, seed, rate, budget)
      for rate in rates
      for seed in seeds
    ]


def _supervised_run(config, policy, mesh, evaluate, seed, rate, budget):
  """One line; stops after the batch that reaches the budget of tokens."""
  optimizer = dataclasses.replace(optimizer_of(config), learning_rate=rate)
  copy = lambda tree: jax.tree.map(lambda x: x.copy(), tree)
  own = dataclasses.replace(policy, trainable=copy(policy.trainable))
  trainer = SupervisedTrainer(own, optimizer, mesh, seed=seed)
  rollout, update = config.rollout, config.update
  prompts = prompts_lib.PromptSet(
    config.task, 'train', policy.tokenizer, rollout.max_prompt_tokens
  )
  size = (update.minibatch_prompts or rollout.num_prompts) * rollout.group_size
  steps = rollout.num_prompts * rollout.group_size // size
  curve: dict[str, list] = {'tokens': [], 'pass_at_1': []}
  tokens, seconds = 0, []
  batches = shuffled_batches(len(prompts), size, seed)
  for i in range(config.iterations + 1):
    if i % config.evaluation.every == 0 or tokens >= budget:
      found = evaluate(trainer.params)
      curve['tokens'].append(tokens)
      curve['pass_at_1'].append(round(float(found['evaluation/pass_at_1']), 4))
    if tokens >= budget:
      break
    started = time.perf_counter()
    for _ in range(steps):
      rows = supervised_fit.pair_rows(
        prompts, next(batches), rollout.max_response_tokens
      )
      tokens += int(rows.length_B.sum())
      jax.block_until_ready(trainer.step(rows))
    seconds.append(time.perf_counter() - started)
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
