"""Predicts the cells of experiments/accelerator.sh without an accelerator.

  .venv-aot/bin/python -m experiments.benchmarks.predict
    --target=gpu:h100:1x1x1 --out=experiments/benchmarks/predicted.jsonl

A line per cell: memory of the program by the compiler of the target, the least
seconds by the roofline, and the seconds expected, which are the larger of FLOP
at 45% of the peak of the chip and bytes at 60% of the bandwidth of its memory.
The lines are made before a device is measured and kept with the sources.
"""

import dataclasses
import json

from absl import flags
import jax

from configs import gsm8k
from configs.methods import grpo
from experiments.benchmarks.stages import PRESETS
from experiments.flags import configuration, outputs
from rl_jax.learning.update import UpdateConfig
from rl_jax.planning import (
  abstract_run,
  memory_plan,
  programs,
  roofline,
  targets,
)
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib

PRESETS_USED = ('qwen2p5_1p5b', 'qwen2p5_0p5b')
ROWS = (64, 512)
GROUP, PROMPT, NEW, MICROBATCH = 8, 128, 128, 64  # as in accelerator.sh
COMPUTE, MEMORY = 0.45, 0.60  # shares of the peaks that are expected
_TARGET = flags.DEFINE_string('target', 'gpu:h100:1x1x1', targets.FORM)
_OUT = flags.DEFINE_string('out', None, 'File of the lines.', required=True)


def cell_config(preset: str, rows: int):
  """The configuration whose stages a cell times: GRPO without its KL term."""
  method = grpo.get_method()
  config = gsm8k.get_config(method.replace(losses=method.losses[:1]))
  return dataclasses.replace(
    config,
    model=dataclasses.replace(
      config.model,
      config=PRESETS[preset],
      compute_dtype='bfloat16',
      remat=False,
    ),
    rollout=dataclasses.replace(
      config.rollout,
      num_prompts=rows // GROUP,
      group_size=GROUP,
      max_prompt_tokens=PROMPT,
      max_response_tokens=NEW,
    ),
    update=UpdateConfig(microbatch_prompts=MICROBATCH // GROUP),
    evaluation=dataclasses.replace(config.evaluation, every=0),
  )


def predicted(target: targets.Target, preset: str, rows: int) -> list[dict]:
  """The lines of the stages of one cell."""
  config = cell_config(preset, rows)
  mesh = mesh_lib.make_mesh(config.mesh, target.devices())
  model = policy_lib.planned_model(
    config.model, config.task, target.platform, config.mesh.sequence
  )
  assert model is not None  # named by the preset
  plan = memory_plan.estimate(config, model, mesh)
  lowered = abstract_run.AbstractRun(config, model, mesh).lower()
  sent = dict.fromkeys(lowered, 0.0)
  bounds = {
    bound.stage: bound
    for bound in roofline.roofline(config, model, plan, 1, sent)
  }
  lines = []
  for stage in ('generate', 'update'):
    seconds = bounds[stage].seconds(target.card)
    program = programs.compiled(
      lowered[stage],
      devices=1,
      unknown_trips=NEW - 1,
      platform=target.platform.name,
    )
    lines.append(
      {
        'preset': preset,
        'stage': stage,
        'rows': rows,
        'seconds_least': max(seconds.values()),
        'seconds_predicted': max(
          seconds['compute'] / COMPUTE, seconds['memory'] / MEMORY
        ),
        'program_memory_gb': program.memory / 1e9,
        'compile_seconds': program.seconds,
      }
    )
  return lines


def main(argv):
  """Writes and prints the lines."""
  del argv
  outputs.check_file('out', _OUT.value)
  jax.config.update('jax_platforms', 'cpu')
  target = targets.Target.parse(_TARGET.value)
  rows = [
    json.dumps({'target': _TARGET.value, 'jax': jax.__version__} | line)
    for preset in PRESETS_USED
    for count in ROWS
    for line in predicted(target, preset, count)
  ]
  text = '\n'.join(rows) + '\n'
  print(text, end='')
  with open(_OUT.value, 'w', encoding='utf-8') as file:
    file.write(text)


if __name__ == '__main__':
  configuration.run(main)
