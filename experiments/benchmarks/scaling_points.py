"""Points of scaling.py, their exponents and their figure."""

from collections.abc import Callable
import dataclasses
import functools
import json
import os
import time

import jax
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
import numpy as np

from experiments.benchmarks import accelerator_cells as cells
from rl_jax import models
from rl_jax.models import platform
from rl_jax.planning import costs

MODEL = models.ModelConfig(
  vocab_size=512,
  num_layers=2,
  width=256,
  num_heads=8,
  num_kv_heads=4,
  head_size=32,
  mlp_size=1024,
)
SHAPE = costs.Shape(
  num_prompts=4, group_size=8, prompt_tokens=64, new_tokens=64
)
AXES = {
  'group_size': (2, 4, 8, 16),
  'prompt_tokens': (64, 128, 256, 512),
  'new_tokens': (16, 32, 64, 128, 256),
  'vocab_size': (512, 2048, 8192, 16384),
}
STAGES = ('generate', 'update')


def least_seconds(repeats: int, call: Callable[[], None]) -> float:
  """CPU time of the cheapest call where the CPU computes, else wall time."""
  cpu = jax.default_backend() == 'cpu'
  clock = time.process_time if cpu else time.perf_counter
  call()
  times = []
  for _ in range(repeats):
    started = clock()
    call()
    times.append(clock() - started)
  return min(times)


def point(axis: str, value: int, repeats: int) -> dict:
  """Seconds and FLOP of both stages with one size changed."""
  model, shape = platform.resolve(MODEL), SHAPE
  if axis == 'vocab_size':
    model = dataclasses.replace(model, vocab_size=value)
  else:
    shape = dataclasses.replace(shape, **{axis: value})
  timed = functools.partial(least_seconds, repeats)
  found = {
    'generate': cells.generate(model, shape, 1.0, timed),
    'update': cells.update(model, shape, 1.0, shape.rows, timed),
  }
  row = {'axis': axis, 'value': value}
  for stage in STAGES:
    row[f'{stage}_seconds'] = found[stage]['seconds']
    row[f'{stage}_flop'] = costs.model_flops(model, shape, stage)
  return row


def exponent(values, amounts) -> float:
  """The least-squares slope of log(amount) over log(value)."""
  return float(np.polyfit(np.log(values), np.log(amounts), 1)[0])


def read(path: str) -> list[dict]:
  """The lines of a file; none if there is no file yet."""
  if not os.path.exists(path):
    return []
  with open(path, encoding='utf-8') as file:
    return [json.loads(line) for line in file]


def draw(rows: list[dict], path: str) -> None:
  """Four panels; prints and shows measured and predicted exponents."""
  figure = Figure(figsize=(8, 6), layout='constrained')
  FigureCanvasAgg(figure)
  for axis, panel in zip(AXES, figure.subplots(2, 2).flat, strict=True):
    mine = sorted(
      (r for r in rows if r['axis'] == axis), key=lambda r: r['value']
    )
    values = [r['value'] for r in mine]
    for stage, colour in zip(STAGES, ('#0072B2', '#D55E00'), strict=True):
      seconds = np.array([r[f'{stage}_seconds'] for r in mine])
      flop = np.array([r[f'{stage}_flop'] for r in mine])
      measured, predicted = exponent(values, seconds), exponent(values, flop)
      print(f'{axis} {stage}: {measured:.2f}, theory {predicted:.2f}')
      label = f'{stage}: {measured:.2f} (theory {predicted:.2f})'
      panel.loglog(values, seconds, 'o-', color=colour, label=label)
      # Theory has no unit of time: it goes through the last point.
      panel.loglog(values, flop * seconds[-1] / flop[-1], ':', color=colour)
    panel.set_xlabel(axis.replace('_', ' '))
    panel.set_ylabel('CPU seconds')
    panel.set_xticks(values, [str(v) for v in values])
    panel.minorticks_off()
    panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter('{x:g}')
    panel.legend(frameon=False, fontsize=8)
  figure.savefig(path, dpi=90)
