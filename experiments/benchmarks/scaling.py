"""Measures how the cost of a rollout and of an update grows along four axes.

  for axis in group_size prompt_tokens new_tokens vocab_size; do
    python -m experiments.benchmarks.scaling --axis=$axis --out=scaling.jsonl
  done
  python -m experiments.benchmarks.scaling --figure=scaling.png
    --out=scaling.jsonl

Writes one JSON line per point: the least seconds of the repeats and the FLOP of
the model. Seconds are CPU time on a CPU, so that other programs hardly affect
them. Points that are in the file are not repeated. The figure fits log(seconds)
and log(FLOP) over the same points: the slopes are the measured exponent and the
one that theory predicts.
"""

import dataclasses
import functools
import json
import os
import time
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.benchmarks import stages as stages_lib
from experiments.benchmarks import timing
from experiments.flags import configuration, outputs
from experiments.reports import figures
from rl_jax.models import platform
from rl_jax.planning import costs
from rl_jax.records import metrics
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

MODEL = dataclasses.replace(
  stages_lib.PRESETS['small'],
  num_layers=2,
  tied_embeddings=True,
  qk_norm=False,
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


def point(axis: str, value: int, repeats: int) -> dict:
  """Seconds and FLOP of both stages with one size changed."""
  model, shape = platform.resolve(MODEL, platform=Platform.of_process()), SHAPE
  if axis == 'vocab_size':
    model = dataclasses.replace(model, vocab_size=value)
  else:
    shape = dataclasses.replace(shape, **{axis: value})
  cpu = Platform.of_process().is_cpu
  clock = time.process_time if cpu else time.perf_counter
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  row: dict[str, Any] = {'axis': axis, 'value': value}
  with jax.set_mesh(mesh):
    stages = stages_lib.Stages(model, shape, 'step', mesh)
    for stage in STAGES:
      call = functools.partial(stages.call, stage)
      row[f'{stage}_seconds'] = min(timing.seconds(call, repeats, clock))
      row[f'{stage}_flop'] = costs.model_flops(model, shape, stage)
  return row


def exponent(values, amounts) -> float:
  """The least-squares slope of log(amount) over log(value)."""
  return float(np.polyfit(np.log(values), np.log(amounts), 1)[0])


def read(path: str) -> list[dict]:
  """The lines of a file; none if there is no file yet."""
  return metrics.read_jsonl(path) if os.path.exists(path) else []


def draw(rows: list[dict], path: str) -> None:
  """Four panels; prints and shows measured and predicted exponents."""
  figure = figures.new_figure(8, 6)
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
      # Theory has no unit of time: its line goes through the last point.
      panel.loglog(values, flop * seconds[-1] / flop[-1], ':', color=colour)
    panel.set_xlabel(axis.replace('_', ' '))
    panel.set_ylabel('CPU seconds')
    panel.set_xticks(values, [str(v) for v in values])
    panel.minorticks_off()
    locator = figures.ticker().LogLocator(subs=(1, 2, 5))
    panel.yaxis.set_major_locator(locator)
    panel.yaxis.set_major_formatter('{x:g}')
    panel.legend(frameon=False, fontsize=8)
  figure.savefig(path, dpi=90)


def main(argv):
  """Measures one axis, or draws what was measured."""
  del argv
  if not (_AXIS.value or _FIGURE.value):
    raise ValueError('give --axis, to measure, or --figure, to draw')
  for flag in (_OUT, _FIGURE):
    if flag.value is not None:
      outputs.check_file(flag.name, flag.value)
  if _AXIS.value:
    done = {(r['axis'], r['value']) for r in read(_OUT.value)}
    for value in AXES[_AXIS.value]:
      if (_AXIS.value, value) in done:
        continue
      line = json.dumps(point(_AXIS.value, value, _REPEATS.value))
      print(line, flush=True)
      with open(_OUT.value, 'a', encoding='utf-8') as file:
        file.write(line + '\n')
  if _FIGURE.value:
    rows = read(_OUT.value)
    for axis in AXES:
      if len([row for row in rows if row.get('axis') == axis]) < 2:
        raise ValueError(
          f'--figure: {_OUT.value} has less than two points of --axis={axis}'
        )
    draw(rows, _FIGURE.value)


if __name__ == '__main__':
  _AXIS = flags.DEFINE_enum('axis', None, list(AXES), 'What to vary.')
  _REPEATS = flags.DEFINE_integer(
    'repeats', 5, 'Timed calls per point.', lower_bound=1
  )
  _OUT = flags.DEFINE_string(
    'out', None, 'JSON lines to append to.', required=True
  )
  _FIGURE = flags.DEFINE_string('figure', None, 'PNG to draw.')
  configuration.run(main)
