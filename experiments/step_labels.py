"""Labels of steps by Monte Carlo, by a judge and by both, of sampled responses.

  python -m experiments.step_labels --config=configs/chain.py
    --policy=runs/chain_warm --out=runs/steps

For every prompt --responses are sampled; from behind each step --completions
more, up to the first step that none of them leads to the answer from. Files of
--out, {prompt, completions, labels} for tasks.StepRows:
  soft.jsonl       the fraction of right completions; the last step has its
                   outcome
  monte_carlo.jsonl  1 if one completion was right
  judge.jsonl      the exact check of steps; with --judge_errors each verdict is
                   wrong with that chance
  exact.jsonl      the exact check
  consensus.jsonl  labels of monte_carlo.jsonl, of responses whose first wrong
                   step is that of judge.jsonl
and bench.jsonl for `experiments.evaluate_reward --steps`, with exact labels.
Prints a line of JSON: how often the labels agree. The task is Chain, whose
steps can be checked.
Source: Zhang et al., "The Lessons of Developing Process Reward Models in
Mathematical Reasoning", 2025: 8 completions, hard labels, consensus.
"""

from collections.abc import Callable, Sequence
import functools
import json
import pathlib
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration
from experiments.rewards import step_labels
from rl_jax import rollouts
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import Chain, base, chain_steps
from rl_jax.types import FORCED, PAD

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is Chain.', required=True
)
_POLICY = flags.DEFINE_string('policy', None, 'A model.', required=True)
_OUT = flags.DEFINE_string('out', None, 'Folder of the files.', required=True)
_SPLIT = flags.DEFINE_string('split', 'train', 'Of the prompts.')
_FIRST = flags.DEFINE_integer('first', 0, 'Index of the first prompt.', 0)
_PROMPTS = flags.DEFINE_integer('prompts', 300, 'How many.', 1)
_RESPONSES = flags.DEFINE_integer('responses', 4, 'Of a prompt.', 1)
_COMPLETIONS = flags.DEFINE_integer(
  'completions', 8, 'Behind a step; 0: none.', 0
)
_ERRORS = flags.DEFINE_float('judge_errors', 0.1, 'Of verdicts.', 0.0, 1.0)
_BATCH = flags.DEFINE_integer('batch', 128, 'Prefixes at a time.', 1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of all draws.')

# (prompt, text that is given) of many, how many -> texts that go on, of each.
Write = Callable[[Sequence[tuple[str, str]], int], list[list[str]]]


def writer(path: str, config: Any, mesh: Any, key: jax.Array) -> Write:
  """Samples of the model at path, of responses as long as the config's."""
  model, params, tokenizer = policy_lib.load_checkpoint(path, mesh, None)
  P, T = config.rollout.max_prompt_tokens, config.rollout.max_response_tokens
  sampling = SamplingConfig(eos_ids=tuple(tokenizer.eos_ids))
  serial = 0

  @functools.cache
  def engine(samples):
    return make_engine(
      *(model, sampling), group_size=samples, max_response_tokens=T, mesh=mesh
    )

  def one(batch, samples):
    nonlocal serial
    prompt, mask = (
      np.zeros((len(batch), P), x) for x in (np.int32, np.float32)
    )
    shape = (len(batch), T)
    given, kind = np.zeros(shape, np.int32), np.full(shape, PAD, np.int32)
    length = np.zeros(len(batch), np.int32)
    for row, (question, text) in enumerate(batch):
      ids, before = tokenizer.encode(question), tokenizer.encode(text)
      prompt[row, P - len(ids) :], mask[row, P - len(ids) :] = ids, 1
      given[row, : len(before)], kind[row, : len(before)] = before, FORCED
      length[row] = len(before)
    start = rollouts.start_trajectories(
      *(prompt, mask, np.arange(len(batch))),
      group_size=samples,
      max_response_tokens=T,
      first_serial=serial,
    )
    serial += len(batch)
    repeat = lambda x: np.repeat(x, samples, axis=0)
    start = start.replace(
      response_BT=repeat(given), kind_BT=repeat(kind), length_B=repeat(length)
    )
    traj = engine(samples).generate(params, traj=start, key=key)
    return jax.device_get(traj)

  def write(prefixes, samples):
    texts, size = [], _BATCH.value
    for first in range(0, len(prefixes), size):
      batch = list(prefixes[first : first + size])
      traj = one(batch + batch[:1] * (size - len(batch)), samples)
      rows = [
        tokenizer.decode([i for i in ids[:n] if i not in tokenizer.eos_ids])
        for ids, n in zip(traj.response_BT, traj.length_B, strict=True)
      ]
      texts += [rows[i * samples :][:samples] for i in range(len(batch))]
    return texts

  return write


def fractions(
  task: Chain, examples: list, responses: list[tuple[str, ...]], write: Write
) -> list[list[float]]:
  """Of each step of each response, up to the first 0.

  Equal prefixes of one prompt share their completions. examples: of each
  response.
  """
  right = lambda e, text: task.reward(e, text)[base.OUTCOME]
  found: list[list[float]] = [[] for _ in responses]
  for place in range(max(map(len, responses))):
    live = [
      row
      for row, steps in enumerate(responses)
      if place < len(steps) and 0.0 not in found[row]
    ]
    last = [row for row in live if place == len(responses[row]) - 1]
    for row in last:
      text = ''.join(responses[row])
      found[row].append(float(right(examples[row], text)))
    prefixes: dict[tuple[str, str], list[int]] = {}
    for row in set(live) - set(last):
      key = examples[row].prompt, ''.join(responses[row][: place + 1])
      prefixes.setdefault(key, []).append(row)
    every = write(list(prefixes), _COMPLETIONS.value) if prefixes else []
    for rows, texts in zip(prefixes.values(), every, strict=True):
      share = np.mean([right(examples[rows[0]], text) for text in texts])
      for row in rows:
        found[row].append(float(share))
  return found


def main(argv):
  """Writes the files."""
  del argv
  config = configuration.build(_CONFIG.value, 'sft')
  task = config.task
  if not isinstance(task, Chain):
    raise ValueError(
      f'--config={_CONFIG.value} has the task {type(task).__name__}: only the '
      'steps of Chain can be checked'
    )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  rng = np.random.default_rng(_SEED.value)
  last = _FIRST.value + _PROMPTS.value
  prompts = [task.example(_SPLIT.value, i) for i in range(_FIRST.value, last)]
  with jax.set_mesh(mesh):
    key = jax.random.key(_SEED.value)
    write = writer(_POLICY.value, config, mesh, key)
    texts = write([(e.prompt, '') for e in prompts], _RESPONSES.value)
    pairs = [
      (example, chain_steps.split(text))
      for example, own in zip(prompts, texts, strict=True)
      for text in own
    ]
    examples, responses = zip(*[p for p in pairs if p[1]], strict=True)
    exact = [
      chain_steps.first_error(*pair)
      for pair in zip(examples, responses, strict=True)
    ]
    outcome = [
      task.reward(e, ''.join(steps))[base.OUTCOME]
      for e, steps in zip(examples, responses, strict=True)
    ]
    folder = pathlib.Path(_OUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    _dump(
      folder / 'bench.jsonl',
      [
        {
          'prompt': e.prompt,
          'steps': steps,
          'label': label,
          'final_answer_correct': bool(o),
        }
        for e, steps, label, o in zip(
          *(examples, responses, exact, outcome), strict=True
        )
      ],
    )
    counts = list(map(len, responses))
    about = {
      'responses': len(responses),
      'right': float(np.mean(outcome)),
      'right_with_a_wrong_step': float(
        np.mean([x >= 0 for x, o in zip(exact, outcome, strict=True) if o])
      ),
    }
    if _COMPLETIONS.value:
      share = fractions(task, list(examples), list(responses), write)
      about |= _write_labels(folder, examples, responses, exact, share, rng)
  print(json.dumps({**about, 'steps': sum(counts)}))


def _write_labels(folder, examples, responses, exact, share, rng):
  """The four files of labels; how often their first errors agree."""
  counts = list(map(len, responses))
  carlo = [step_labels.first_unreached(x) for x in share]
  judge = [
    step_labels.noisy(x, n, _ERRORS.value, rng)
    for x, n in zip(exact, counts, strict=True)
  ]
  hard = lambda firsts: [
    step_labels.hard_labels(x, n) for x, n in zip(firsts, counts, strict=True)
  ]
  both = [step_labels.agree(*x) for x in zip(carlo, judge, strict=True)]
  labels = {
    'soft': [
      x + [0.0] * (n - len(x)) for x, n in zip(share, counts, strict=True)
    ],
    'monte_carlo': hard(carlo),
    'judge': hard(judge),
    'exact': hard(exact),
    'consensus': [
      x if kept else None for x, kept in zip(hard(carlo), both, strict=True)
    ],
  }
  for name, rows in labels.items():
    _dump(
      folder / f'{name}.jsonl',
      [
        {'prompt': e.prompt, 'completions': steps, 'labels': row}
        for e, steps, row in zip(examples, responses, rows, strict=True)
        if row is not None
      ],
    )
  same = lambda x: float(np.mean(np.asarray(x) == np.asarray(exact)))
  kept = [
    x for x, k in zip(zip(carlo, exact, strict=True), both, strict=True) if k
  ]
  return {
    'monte_carlo_is_exact': same(carlo),
    'judge_is_exact': same(judge),
    'kept': float(np.mean(both)),
    'consensus_is_exact': float(np.mean([a == b for a, b in kept])),
  }


def _dump(path, rows):
  with open(path, 'w', encoding='utf-8') as file:
    file.writelines(json.dumps(row) + '\n' for row in rows)


if __name__ == '__main__':
  configuration.run(main)
