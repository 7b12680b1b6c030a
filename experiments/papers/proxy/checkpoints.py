"""Samples of a run's checkpoints: the rule, the learned reward, the divergence.

Metrics of training would not do for losses on pairs: their batches hold rows of
data.
"""

import dataclasses
import tempfile

import jax
import numpy as np

from experiments.papers.proxy import pairs, sweep
from experiments.sweeps import runs as sweep_runs
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.rollouts.rounds import Draw
from rl_jax.runs import assembly
from rl_jax.runs import policy as policy_lib

PROMPTS, SAMPLES = 96, 8


class Sampler:
  """Samples of policies of a seed, judged as in its runs."""

  def __init__(self, seed: int):
    setting = next(
      one
      for one in sweep.get_sweep()
      if one['seed'] == seed and one['method'] == 'grpo'
    )
    config = sweep_runs.Run(setting).config
    rollout = dataclasses.replace(
      config.rollout, num_prompts=PROMPTS, group_size=SAMPLES
    )
    config = dataclasses.replace(config, rollout=rollout)
    self._mesh = assembly.prepare(config)
    with jax.set_mesh(self._mesh), tempfile.TemporaryDirectory() as workdir:
      self._parts = assembly.assemble(config, workdir, self._mesh)

  def __call__(self, folder: str | None, step: int) -> dict[str, float]:
    """Means of the weights of an iteration; of the untrained ones for None.

    kl: nats a response against the untrained weights, k3.
    """
    parts = self._parts
    with jax.set_mesh(self._mesh):
      params = {**parts.policies.frozen(), **parts.state.params}
      if folder is not None:
        _, loaded, _ = policy_lib.load_checkpoint(folder, self._mesh, step)
        params |= loaded
      traj, *_ = parts.collector.collect(Draw(params, parts.method, 0, 0))
      kl_BT = kl_estimate(traj.logp_behaviour_BT, traj.logp_ref_BT, 'k3')
      found = {
        'gold': traj.rewards['outcome'],
        'learned': traj.rewards['learned'],
        'kl': (kl_BT * traj.mask_BT).sum(1),
      }
      return {n: round(float(np.mean(x_B)), 4) for n, x_B in found.items()}

  def close(self) -> None:
    """Ends the verifier."""
    self._parts.runner.close()


class Courses:
  """The course of any run on pairs; runs of one seed follow each other."""

  def __init__(self):
    self._seed: int | None = None
    self._sampler: Sampler | None = None

  def __call__(self, setting: sweep_runs.Setting, folder: str) -> dict:
    """A list for each number, from the untrained policy on."""
    sampler = self._sampler
    if sampler is None or setting['seed'] != self._seed:
      self.close()
      self._seed = setting['seed']
      self._sampler = sampler = Sampler(setting['seed'])
    rows = [sampler(None, 0)]
    rows += [sampler(folder, step) for step in pairs.steps(setting)]
    return {name: [row[name] for row in rows] for name in rows[0]}

  def close(self) -> None:
    """Ends the verifier of the last seed."""
    if self._sampler is not None:
      self._sampler.close()
