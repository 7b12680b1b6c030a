"""Evaluates policies on held-out word problems, with paired intervals.

  python -m experiments.papers.word_problems.evaluate
    --policies=models/smollm2,models/smollm2_warm,runs/smollm2 --limit=100

Evaluates the last 100 rows of mawps_singleop.jsonl, and the first --limit rows
of mawps_addsub.jsonl and svamp_test.jsonl, with the prompt of
configs/smollm2_word_problems.py: greedy accuracy and the mean of 8 samples. The
first policy is also evaluated with four worked examples, and with the chat
prompt and a prefilled answer, as a weak prompt would exaggerate the gain. Every
policy is compared with the last: mean paired difference per row with its 95%
interval over rows (Student's t).
"""

import dataclasses
import functools
import json
import os

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration
from experiments.tables import intervals
from rl_jax.config import EvaluationConfig
from rl_jax.records import metrics
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.rollouts.verifiers import TextVerifier
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import Evaluator
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate, PlainTemplate
from rl_jax.verification.pool import VerifierPool

_POLICIES = flags.DEFINE_list('policies', None, 'Directories.', required=True)
_DATA = flags.DEFINE_string('data_dir', 'data', 'Where the JSONL files are.')
_LIMIT = flags.DEFINE_integer('limit', 100, 'Rows of mawps_addsub and svamp.')
_SAMPLES = flags.DEFINE_integer('num_samples', 8, 'Samples per row.')
_OUT = flags.DEFINE_string(
  'out', None, 'JSON file for the outcome of each row.'
)

_TEMPERATURE = flags.DEFINE_float('temperature', 0.7, 'Of sampling.')

FEW_SHOT = """Question: Tom has 3 pens. He buys 5 more. How many pens has Tom?
Answer: 3 + 5 = 8

Question: Ann had 9 figs and ate 4. How many figs are left?
Answer: 9 - 4 = 5

Question: There are 6 bags with 7 nuts each. How many nuts are there?
Answer: 6 * 7 = 42

Question: 20 cards are split into groups of 4. How many groups are there?
Answer: 20 / 4 = 5

Question: {question}
Answer:"""
# A prefilled start of the response, so that a short equation follows.
OPENED = ChatTemplate(prefill='The calculation is ')


def tasks(config, template):
  """Name -> task whose test split is held out from training."""
  base = dataclasses.replace(config.task, template=template)

  def path(name):
    return os.path.join(_DATA.value, name)

  whole = dict(hold_out='none', num_test=0)
  return {
    'mawps_singleop': dataclasses.replace(
      base, sources={'train': path('mawps_singleop.jsonl')}
    ),
    'mawps_addsub': dataclasses.replace(
      base, sources={'test': path('mawps_addsub.jsonl')}, **whole
    ),
    'svamp': dataclasses.replace(
      base,
      sources={'test': path('svamp_test.jsonl')},
      question='{Body} {Question}',
      answer='{Answer}',
      **whole,
    ),
  }


def outcomes(source, config, sets, mesh):
  """Set -> {'greedy': [n], 'samples': [n, k]} of one policy."""
  model, params, tokenizer = policy_lib.load_checkpoint(source, mesh)
  rollout, found = config.rollout, {}
  for name, task in sets.items():
    prompts = PromptSet(task, 'test', tokenizer, 512)
    with VerifierPool(task) as verifier:
      evaluator = Evaluator(
        functools.partial(
          make_engine,
          model,
          max_response_tokens=rollout.max_response_tokens,
          mesh=mesh,
        ),
        prompts,
        TextVerifier(verifier),
        EvaluationConfig(
          num_prompts=100 if name == 'mawps_singleop' else _LIMIT.value,
          num_samples=_SAMPLES.value,
          batch_prompts=25,
        ),
        sampling=SamplingConfig(temperature=_TEMPERATURE.value),
        stop=rollout.stop,
      )
      summary, found[name] = evaluator.run(params)
    print(source, name, json.dumps(summary), flush=True)
  return found


def main(argv):
  """Evaluates all policies on the same rows and prints Markdown."""
  del argv
  config = configuration.build('smollm2_word_problems', 'grpo')
  mesh = mesh_lib.make_mesh(MeshConfig(data=jax.device_count()))
  jax.set_mesh(mesh)
  own = tasks(config, config.task.template)
  first, *others = _POLICIES.value
  found = {
    f'{first}, worked examples': (first, PlainTemplate(text=FEW_SHOT)),
    f'{first}, opened answer': (first, OPENED),
  }
  found = {
    name: outcomes(source, config, tasks(config, template), mesh)
    for name, (source, template) in found.items()
  }
  for source in (first, *others):
    found[source] = outcomes(source, config, own, mesh)
  if _OUT.value:
    with open(_OUT.value, 'w') as file:
      json.dump(metrics.to_json(found), file)
  *before, last = found
  print(f'| policy | set | rows | measure | policy | {last} | change |')
  print('|---|---|---|---|---|---|---|')
  for name in before:
    for line in comparison(found[name], found[last]):
      print(f'| {name} {line}')


def comparison(before, after):
  """Lines of the table: every set and all of them pooled."""
  for names in (*([n] for n in after), list(after)):
    for measure in ('greedy', 'samples'):
      rows = [
        np.concatenate(
          [
            side[n][measure].reshape(len(side[n]['greedy']), -1).mean(axis=1)
            for n in names
          ]
        )
        for side in (before, after)
      ]
      change = intervals.difference(rows[1], rows[0])
      label = names[0] if len(names) == 1 else 'pooled'
      kind = 'greedy' if measure == 'greedy' else f'avg@{_SAMPLES.value}'
      yield (
        f'| {label} | {len(rows[0])} | {kind} | {rows[0].mean():.1%} | '
        f'{rows[1].mean():.1%} | {change.effect:+.1%} '
        f'[{change.low:+.1%}, {change.high:+.1%}] |'
      )


if __name__ == '__main__':
  configuration.run(main)
