"""Before and after on held-out word problems, with paired intervals.

  python -m experiments.word_problems --before=models/smollm2
    --after=runs/smollm2 --data_dir=data --limit=100

Evaluates the last 100 rows of mawps_singleop.jsonl, and the first --limit rows
of mawps_addsub.jsonl and svamp_test.jsonl, with the prompt of
configs/smollm2_word_problems.py: greedy accuracy and the mean of 8 samples. The
policy before is also given the chat prompt with an opened answer, so that no
weak prompt makes the gain. The interval is that of the paired difference per
row (bootstrap over rows, 95%).
"""

import dataclasses
import json
import os

from absl import flags
import jax
import numpy as np

from experiments import configuration
from rl_jax import metrics, setup, sharding
from rl_jax.checkpoint import quiet_orbax
from rl_jax.evaluate import Evaluator
from rl_jax.prompts import PromptSet
from rl_jax.sharding import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification import VerifierPool

_BEFORE = flags.DEFINE_string('before', None, 'Policy.', required=True)
_AFTER = flags.DEFINE_string('after', None, 'Policy.', required=True)
_DATA = flags.DEFINE_string('data_dir', 'data', 'Where the JSONL files are.')
_LIMIT = flags.DEFINE_integer('limit', 100, 'Rows of addsub and svamp.')
_SAMPLES = flags.DEFINE_integer('num_samples', 8, 'Samples a row.')
_OUT = flags.DEFINE_string('out', None, 'JSON file for outcomes by row.')

_TEMPERATURE = flags.DEFINE_float('temperature', 0.7, 'Of the samples.')

BOOTSTRAPS = 10_000
# What opens the assistant's turn, so that a short equation follows.
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
  model, params, tokenizer = setup.load_checkpoint(source, mesh)
  rollout, found = config.rollout, {}
  for name, task in sets.items():
    prompts = PromptSet(task, 'test', tokenizer, 512)
    with VerifierPool(task) as verifier:
      evaluator = Evaluator(
        model=model,
        tokenizer=tokenizer,
        prompts=prompts,
        verifier=verifier,
        mesh=mesh,
        max_new_tokens=rollout.max_response_tokens,
        num_prompts=100 if name == 'mawps_singleop' else _LIMIT.value,
        num_samples=_SAMPLES.value,
        temperature=_TEMPERATURE.value,
        stop=rollout.stop,
        batch_prompts=25,
      )
      summary, found[name] = evaluator.run(params)
    print(source, name, json.dumps(summary), flush=True)
  return found


def paired_interval(before, after, seed=0):
  """(mean difference, low, high) of a 95% bootstrap over rows."""
  difference = np.asarray(after) - np.asarray(before)
  rng = np.random.default_rng(seed)
  rows = rng.integers(len(difference), size=(BOOTSTRAPS, len(difference)))
  low, high = np.quantile(difference[rows].mean(axis=1), (0.025, 0.975))
  return float(difference.mean()), float(low), float(high)


def main(argv):
  """Evaluates both policies on the same rows and prints Markdown."""
  del argv
  quiet_orbax()
  config = configuration.build('smollm2_word_problems', 'grpo')
  mesh = sharding.make_mesh(MeshConfig(data=jax.device_count()))
  jax.set_mesh(mesh)
  prompts = {
    "the config's": config.task.template,
    'opened answer': OPENED,
  }
  sets = {name: tasks(config, prompt) for name, prompt in prompts.items()}
  before = {
    name: outcomes(_BEFORE.value, config, task, mesh)
    for name, task in sets.items()
  }
  after = outcomes(_AFTER.value, config, sets["the config's"], mesh)
  if _OUT.value:
    with open(_OUT.value, 'w') as file:
      json.dump(metrics.to_json({'before': before, 'after': after}), file)
  print('| before: prompt | set | rows | measure | before | after | change |')
  print('|---|---|---|---|---|---|---|')
  for prompt in prompts:
    for line in comparison(before[prompt], after):
      print(f'| {prompt} {line}')


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
      mean, low, high = paired_interval(*rows)
      label = names[0] if len(names) == 1 else 'pooled'
      kind = 'greedy' if measure == 'greedy' else f'avg@{_SAMPLES.value}'
      yield (
        f'| {label} | {len(rows[0])} | {kind} | {rows[0].mean():.1%} | '
        f'{rows[1].mean():.1%} | {mean:+.1%} [{low:+.1%}, {high:+.1%}] |'
      )


if __name__ == '__main__':
  configuration.run(main)
