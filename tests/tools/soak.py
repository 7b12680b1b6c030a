"""Trains a bandit for thousands of iterations and measures what grows.

  python tests/tools/soak.py --iterations=2000

Prints the slopes, with 95% intervals, of the host's resident memory, of the
bytes and number of live device arrays and of the time of an iteration, over
the iterations after the warm-up; and the programs compiled after it. Exit
status 1 if one of them grows by more than is allowed.

Resident memory does grow by about 70 KB a checkpoint: tensorstore 0.1.86 keeps
what its JSON conversions give to Python (KvStore.Spec.to_json: 272 bytes a
call), and Orbax calls them for every save. With --set=checkpoint.every=100000
it is flat.
"""

import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
os.environ.setdefault('JAX_PLATFORMS', 'cpu')

from absl import app, flags  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

from experiments.flags import configuration  # noqa: E402
from rl_jax.records.checkpoints.files import quiet_orbax  # noqa: E402
from rl_jax.runs import loop
from rl_jax.runtime import profiling  # noqa: E402

SAMPLE_EVERY = 10
# Growth over the whole run that still counts as flat.
MAX_HOST_GROWTH = 0.05  # of the resident memory after the warm-up
MAX_TIME_GROWTH = 0.25  # of the median time of an iteration
MAX_LIVE_GROWTH = 1e-6  # rounding of the slope of a constant

_ITERATIONS = flags.DEFINE_integer('iterations', 2000, 'Iterations.')
_WARMUP = flags.DEFINE_integer('warmup', 200, 'Iterations left out.')
_METHOD = flags.DEFINE_string('method', 'grpo', 'Method.')
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL; may be repeated.')
_WORKDIR = flags.DEFINE_string('workdir', None, 'Default: a new directory.')


def resident_bytes() -> int:
  """Resident memory of this process."""
  pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
  return pages * os.sysconf('SC_PAGE_SIZE')


def observe() -> dict[str, float]:
  """The numbers that must not grow, at a boundary of an iteration."""
  arrays = jax.live_arrays()
  return {
    'resident_bytes': resident_bytes(),
    'live_arrays': len(arrays),
    'live_bytes': sum(x.nbytes for x in arrays),
    'compilations': profiling.compilations(),
  }


def slope(steps: np.ndarray, values: np.ndarray) -> tuple[float, float]:
  """Least-squares slope per step and the half-width of its 95% interval.

  Neighbouring residuals are correlated, so the spread is that of the slopes of
  20 blocks of the data left out in turn (a block jackknife).
  """

  def fit(keep):
    return np.polyfit(steps[keep], values[keep], 1)[0]

  everything = np.ones(len(steps), bool)
  blocks = np.array_split(np.arange(len(steps)), 20)
  parts = []
  for block in blocks:
    keep = everything.copy()
    keep[block] = False
    parts.append(fit(keep))
  parts, n = np.asarray(parts), len(blocks)
  error = np.sqrt((n - 1) / n * ((parts - parts.mean()) ** 2).sum())
  return float(fit(everything)), float(2.09 * error)  # t, 19 degrees


def run(trainer: loop.Trainer) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """(samples by name, with their iteration; seconds of every iteration)."""
  samples, seconds = [], []
  step = trainer.iteration

  def iteration():
    number = trainer.counters.iteration
    if number % SAMPLE_EVERY == 0:
      samples.append({'iteration': number, **observe()})
    started = time.perf_counter()
    metrics = step()
    seconds.append(time.perf_counter() - started)
    return metrics

  trainer.iteration = iteration
  trainer.run()
  names = samples[0]
  return {
    name: np.array([s[name] for s in samples], float) for name in names
  }, np.asarray(seconds)


def report(samples: dict[str, np.ndarray], seconds: np.ndarray) -> list[str]:
  """Prints the table; returns what grew."""
  warmup, total = _WARMUP.value, len(seconds)
  late = samples['iteration'] >= warmup
  steps, grew = samples['iteration'][late], []
  print('quantity          after warm-up   at the end   slope per 1,000 (95%)')

  def line(name, values, at, limit):
    value, error = slope(at, values)
    first, last = np.median(values[:20]), np.median(values[-20:])
    print(
      f'{name:16} {first:14.6g} {last:12.6g} '
      f'{1000 * value:12.4g} +- {1000 * error:.2g}'
    )
    # The whole interval must lie above what is allowed.
    if (value - error) * (total - warmup) > limit * first:
      grew.append(f'{name} grows by {1000 * value:.4g} per 1,000 iterations')

  host = samples['resident_bytes'][late]
  line('resident_bytes', host, steps, MAX_HOST_GROWTH)
  for name in ('live_bytes', 'live_arrays'):
    line(name, samples[name][late], steps, MAX_LIVE_GROWTH)
  at = np.arange(warmup, total)
  line('seconds', seconds[warmup:], at, MAX_TIME_GROWTH)
  compiled = samples['compilations'][late]
  print(
    f'compilations: {compiled[0]:.0f} in the warm-up, '
    f'{compiled[-1] - compiled[0]:.0f} after it'
  )
  if compiled[-1] > compiled[0]:
    grew.append('programs were compiled after the warm-up')
  return grew


def main(argv):
  """Runs, reports, exits with 1 if something grew."""
  del argv
  quiet_orbax()
  sets = [f'iterations={_ITERATIONS.value}', 'optimizer.learning_rate=1e-4']
  config = configuration.build('bandit', _METHOD.value, sets + _SET.value)
  workdir = _WORKDIR.value or tempfile.mkdtemp(prefix='soak')
  grew = report(*run(loop.Trainer(config, workdir)))
  for text in grew:
    print(f'GREW: {text}')
  sys.exit(f'files are in {workdir}' if grew else 0)


if __name__ == '__main__':
  app.run(main)
