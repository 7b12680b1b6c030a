"""Prints JSON lines: how much a policy's responses tell about their prompts.

  python -m experiments.tools.prompt_information --checkpoint=runs/grpo
  python -m experiments.tools.prompt_information --checkpoint=runs/grpo
    --all_steps --num_prompts=32 --num_samples=8
  python -m experiments.tools.prompt_information --checkpoint=models/warm
    --config=configs/worlds/arithmetic.py --until='</think>'

A policy that answers every prompt alike, however diverse its answers are, has
information 0 and retrieval 1 / num_prompts; the entropy by itself does not see
that. One whose responses name their prompt has information log(num_prompts) and
retrieval 1; compare numbers of the same num_prompts. In nats; see
measures.prompt_information. Every response is scored under every prompt, so
num_prompts squared times num_samples responses are.

--checkpoint is a work directory of `train` (its newest checkpoint, or that of
--step; --all_steps: a line for each that it holds) or a model, whose task
--config gives. Of episodes the first turn counts.
Cost: 10 CPU seconds for small models, most of it compilation.
Expected: on the eight prompts of configs/worlds/bandit.py with grpo, seed 100
and 16 samples, as its docstring says for all to be learned, 0.03 at the start
and 1.26 nats at the end, the entropy of its right answers (3, 3, 1 and 1
prompts have the same). With optimizer.learning_rate=0.1 after 20 iterations
0.00: one answer to every prompt, at reward 0.35, with an entropy that the
learned run has too.
Source: RAGEN v2, mll-lab-nu/RAGEN.
"""

import json

from absl import app, flags
import jax

from experiments.flags import configuration
from rl_jax.measures.prompt_information import Draws, PromptInformation
from rl_jax.runs import directory, saving
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib

_CHECKPOINT = flags.DEFINE_string('checkpoint', None, 'Policy.', required=True)
_STEP = flags.DEFINE_integer('step', None, 'Iteration; default: the newest.')
_ALL_STEPS = flags.DEFINE_bool(
  'all_steps', False, 'A line for each iteration that the directory holds.'
)
_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration of the prompts; default: that of the run.'
)
_NUM_PROMPTS = flags.DEFINE_integer('num_prompts', 16, 'Different prompts.')
_NUM_SAMPLES = flags.DEFINE_integer('num_samples', 4, 'Responses to each.')
_SPLIT = flags.DEFINE_string('split', 'train', 'Split of the task.')
_UNTIL = flags.DEFINE_string(
  'until', None, 'Text before which tokens count: </think>. Default: all count.'
)
_BATCH_PROMPTS = flags.DEFINE_integer(
  'batch_prompts', 16, 'Whose responses are drawn and scored at a time.'
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the responses.')


def main(argv):
  """Loads, draws, scores, prints."""
  del argv
  draws = Draws(
    num_prompts=_NUM_PROMPTS.value,
    num_samples=_NUM_SAMPLES.value,
    split=_SPLIT.value,
    until=_UNTIL.value,
    batch_prompts=_BATCH_PROMPTS.value,
    seed=_SEED.value,
  )
  source = _CHECKPOINT.value
  config = directory.run_of(source)
  if _CONFIG.value is not None:
    config = configuration.build(_CONFIG.value)
  if config is None:
    raise app.UsageError(
      f'--config is missing: {source} is not a work directory of a run, whose '
      'task would be taken'
    )
  steps = [_STEP.value]
  if _ALL_STEPS.value:
    steps = saving.steps_of(source)
    if _STEP.value is not None or not steps:
      raise app.UsageError(
        f'--all_steps: {source} holds {len(steps)} steps, --step={_STEP.value}'
      )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(fsdp=jax.device_count()))
  jax.set_mesh(mesh)
  measure = None
  for step in steps:
    model, params, tokenizer = policy_lib.load_checkpoint(source, mesh, step)
    if measure is None:
      measure = PromptInformation(config, model, tokenizer, mesh, draws)
    line = {'checkpoint': source} | ({} if step is None else {'step': step})
    print(json.dumps(line | measure(params)), flush=True)


if __name__ == '__main__':
  configuration.run(main)
