"""The cost of a slow verifier in a rollout of one part, and of several.

  python -m experiments.benchmarks.verification --num_prompts=32 --parts=4

One JSON line: median seconds of generating and verifying a batch, by a verifier
that takes no time and by one that sleeps, each in one part and in several, in
turn; and what each costs in throughput against the fast one in one part:

  cost = 1 - seconds of fast_1 / seconds

Random weights; no response ends early.
"""

import dataclasses
import functools
import json
import statistics
import time

from absl import flags
import jax

from experiments.benchmarks import stages, timing
from experiments.flags import configuration
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.judging.verifiers import TextVerifier
from rl_jax.method import Method
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.pieces.selection import ShuffledPass
from rl_jax.rollouts.collect import Collector, Judging, RolloutConfig
from rl_jax.rollouts.host_selector import HostSelector
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import Draw
from rl_jax.runs import assembly
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import base
from rl_jax.verification.pool import VerifierPool

_PRESET = flags.DEFINE_enum('preset', 'tiny', list(stages.PRESETS), 'Model.')
_count = functools.partial(flags.DEFINE_integer, lower_bound=1)
_PROMPTS = _count('num_prompts', 32, 'Of a batch.')
_GROUP = _count('group_size', 8, 'Samples of a prompt.')
_TOKENS = _count('new_tokens', 256, 'Of every response.')
_PARTS = _count('parts', 4, 'Parts of a rollout.')
_SECONDS = flags.DEFINE_float(
  'seconds', 0.2, 'Of a call of the verifier.', lower_bound=0, upper_bound=60
)
_WORKERS = _count('num_workers', 8, 'Of the verifier.')
_REPEATS = _count('repeats', 3, 'Timed rollouts of each kind.')


@dataclasses.dataclass(frozen=True)
class Sleeping(base.Task):
  """Every response has reward 0, after so many seconds."""

  seconds: float
  reward_weights: dict[str, float] = base.outcome_only()

  def num_prompts(self, split: str) -> int:
    """Enough for a batch."""
    return 1024

  def example(self, split: str, index: int) -> base.Example:
    """Prompts of eight bytes."""
    return base.Example(prompt=f'{index:08d}', answer='', id=index)

  def reward(self, example: base.Example, response: str) -> dict[str, float]:
    """Waits without using a core."""
    time.sleep(self.seconds)
    return {base.OUTCOME: 0.0}


class Rollouts:
  """Batches of one shape; parts and verifiers are given for each."""

  def __init__(self):
    mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
    jax.set_mesh(mesh)
    self._key = assembly.run_key(0, mesh)
    cfg = dataclasses.replace(
      stages.PRESETS[_PRESET.value], vocab_size=ByteTokenizer().vocab_size
    )
    self._params = params_lib.init_params(cfg, self._key, mesh)
    self._engine = make_engine(
      cfg,
      decoding.SamplingConfig(),  # no end token
      EngineConfig(group_size=_GROUP.value, max_response_tokens=_TOKENS.value),
      mesh,
    )

  def collecting(self, pool: VerifierPool, task: Sleeping, parts: int):
    """A function that generates and verifies a batch."""
    rollout = RolloutConfig(
      num_prompts=_PROMPTS.value,
      group_size=_GROUP.value,
      max_response_tokens=_TOKENS.value,
      parts=parts,
    )
    source = Collector(
      rollout,
      engine=self._engine,
      score=lambda params, traj, method: (traj, {}),
      prompts=PromptSet(task, 'train', ByteTokenizer(), 64),
      selector=HostSelector(ShuffledPass(), 1024, self._key),
      judging=Judging(TextVerifier(pool)),
      key=self._key,
    )
    return lambda: source.collect(Draw(self._params, Method(), 0, 0))


def main(argv):
  """Prints the line."""
  del argv
  batches, functions, pools = Rollouts(), {}, []
  for name, seconds in (('fast', 0.0), ('slow', _SECONDS.value)):
    task = Sleeping(seconds)
    pools.append(VerifierPool(task, _WORKERS.value))
    for parts in (1, _PARTS.value):
      functions[f'{name}_{parts}'] = batches.collecting(pools[-1], task, parts)
  times = timing.seconds_in_turn(functions, _REPEATS.value)
  for pool in pools:
    pool.close()
  found = {name: statistics.median(x) for name, x in times.items()}
  cost = {k: round(1 - found['fast_1'] / x, 3) for k, x in found.items()}
  rows = _PROMPTS.value * _GROUP.value
  line = {
    'rows': rows,
    'new_tokens': _TOKENS.value,
    'verifying_seconds': rows * _SECONDS.value / _WORKERS.value,
    'seconds': {name: round(x, 3) for name, x in found.items()},
    'cost': cost,
  }
  print(json.dumps(line))


if __name__ == '__main__':
  configuration.run(main)
