"""Best-of-n by the learned reward, from the untrained policy: no training.

  python -m experiments.papers.proxy.best_of_n
    --out=experiments/papers/proxy/best_of_n.jsonl

A line a seed: the rule's score of the sample with the largest learned reward
among n, for every n of `tables.COUNTS`. Reads the reward models of sweep.py.
"""

import dataclasses
import json
import math
import tempfile

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration
from experiments.papers.proxy import sweep, tables
from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.environment import environment
from rl_jax.config import ExperimentConfig
from rl_jax.rollouts.rounds import Draw
from rl_jax.runs import assembly

_OUT = flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
PROMPTS, SAMPLES = 6, 512  # a prompt for each letter


def expected_best(gold_S: np.ndarray, learned_S: np.ndarray, n: int) -> float:
  """Mean of gold of the largest learned, over all subsets of n of S samples.

  = sum_i C(i, n - 1) / C(S, n) gold_(i), samples in the order of learned, i
  from 0.
  """
  order = np.argsort(learned_S, kind='stable')
  whole = math.comb(len(order), n)
  weights = [math.comb(i, n - 1) / whole for i in range(len(order))]
  return float(np.dot(weights, gold_S[order]))


def samples(config: ExperimentConfig) -> tuple[np.ndarray, np.ndarray]:
  """(gold, learned) of the untrained policy's samples, [N, S] both."""
  mesh = assembly.prepare(config)
  with jax.set_mesh(mesh), tempfile.TemporaryDirectory() as workdir:
    parts = assembly.assemble(config, workdir, mesh)
    params = {**parts.policies.frozen(), **parts.state.params}
    traj, *_ = parts.collector.collect(Draw(params, parts.method, 0, 0))
    found = [np.asarray(traj.rewards[x]) for x in ('outcome', 'learned')]
    parts.runner.close()
  gold_NS, learned_NS = (x.reshape(PROMPTS, SAMPLES) for x in found)
  return gold_NS, learned_NS


def line(seed: int) -> dict:
  """The scores of one seed, means over the prompts."""
  setting = next(
    one
    for one in sweep.get_sweep()
    if one['seed'] == seed and sweep.arm(one) == sweep.NAIVE
  )
  config = sweep_runs.Run(setting).config
  rollout = dataclasses.replace(
    config.rollout, num_prompts=PROMPTS, group_size=SAMPLES
  )
  gold_NS, learned_NS = samples(dataclasses.replace(config, rollout=rollout))
  pairs = list(zip(gold_NS, learned_NS, strict=True))
  return {
    'seed': seed,
    **{
      name: {
        str(n): round(float(np.mean([expected_best(*x, n) for x in rows])), 4)
        for n in tables.COUNTS
      }
      for name, rows in (
        ('gold', pairs),
        ('learned', [(learned, learned) for _, learned in pairs]),
      )
    },
    **environment(),
  }


def main(argv):
  """Samples and writes."""
  del argv
  lines = [line(seed) for seed in sweep.SEEDS]
  with open(_OUT.value, 'w') as file:
    file.writelines(json.dumps(one) + '\n' for one in lines)


if __name__ == '__main__':
  configuration.run(main)
