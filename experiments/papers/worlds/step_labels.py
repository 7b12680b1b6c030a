"""Labels of steps by Monte Carlo, by a judge and by both, of sampled responses.

  python -m experiments.papers.worlds.step_labels
    --config=configs/worlds/chain.py --checkpoint=runs/chain_warm
    --out=runs/steps

For every prompt --responses are sampled; and after each step --completions
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
import dataclasses
import functools
import json
import pathlib
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from experiments.rewards import step_labels
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import base
from rl_jax.types import FORCED, PAD
from rl_jax.worlds import Chain, chain

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is Chain.', required=True
)
_CHECKPOINT = flags.DEFINE_string('checkpoint', None, 'A model.', required=True)
flags.DEFINE_alias('policy', 'checkpoint')
_OUT = flags.DEFINE_string('out', None, 'Folder of the files.', required=True)
_SPLIT = flags.DEFINE_string('split', 'train', 'Of the prompts.')
_FIRST = flags.DEFINE_integer('first', 0, 'Index of the first prompt.', 0)
_PROMPTS = flags.DEFINE_integer('prompts', 300, 'How many.', 1)
_RESPONSES = flags.DEFINE_integer('responses', 4, 'Of a prompt.', 1)
_COMPLETIONS = flags.DEFINE_integer(
  'completions', 8, 'After a step; 0: none.', 0
)
_ERRORS = flags.DEFINE_float('judge_errors', 0.1, 'Of verdicts.', 0.0, 1.0)
_BATCH = flags.DEFINE_integer('batch', 128, 'Prefixes at a time.', 1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of all draws.', 0)

# (prompt, partial response) of many, how many -> whole responses, of each.
Write = Callable[[Sequence[tuple[str, str]], int], list[list[str]]]


def _begun(batch, tokenizer, P, T, path):
  """((prompts, masks), first tokens of responses, their kinds, lengths)."""
  prompt, mask = (np.zeros((len(batch), P), x) for x in (np.int32, np.float32))
  shape = (len(batch), T)
  given, kind = np.zeros(shape, np.int32), np.full(shape, PAD, np.int32)
  length = np.zeros(len(batch), np.int32)
  for row, (question, text) in enumerate(batch):
    ids, before = tokenizer.encode(question), tokenizer.encode(text)
    if len(ids) > P or len(before) > T:
      raise ValueError(
        f'--checkpoint={path}: a prompt has {len(ids)} tokens and a partial '
        f'response {len(before)}, more than rollout.max_prompt_tokens = {P} '
        f'and max_response_tokens = {T}: is it a policy of this task?'
      )
    prompt[row, P - len(ids) :], mask[row, P - len(ids) :] = ids, 1
    given[row, : len(before)], kind[row, : len(before)] = before, FORCED
    length[row] = len(before)
  return (prompt, mask), given, kind, length


def writer(path: str, config: Any, mesh: Any, key: jax.Array) -> Write:
  """Samples of the model at path, of responses as long as the config's."""
  model, params, tokenizer = policy_lib.load_checkpoint(path, mesh, None)
  P, T = config.rollout.max_prompt_tokens, config.rollout.max_response_tokens
  sampling = SamplingConfig(eos_ids=tuple(tokenizer.eos_ids))
  serial = 0

  @functools.cache
  def engine(samples):
    return make_engine(
      model,
      sampling,
      EngineConfig(group_size=samples, max_response_tokens=T),
      mesh,
    )

  def one(batch, samples):
    nonlocal serial
    (prompt, mask), given, kind, length = _begun(batch, tokenizer, P, T, path)
    start = decoding.start_trajectories(
      prompt,
      mask,
      np.arange(len(batch)),
      group_size=samples,
      max_response_tokens=T,
      first_serial=serial,
    )
    serial += len(batch)

    def repeat(x):
      return np.repeat(x, samples, axis=0)

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


@dataclasses.dataclass(frozen=True)
class Response:
  """A sampled response; first_error by the exact check, -1: none."""

  example: base.Example
  steps: tuple[str, ...]
  first_error: int
  right: bool


def read(task: Chain, example: base.Example, text: str) -> Response:
  """A response and what is known of it without Monte Carlo."""
  steps = chain.split_steps(text)
  return Response(
    example=example,
    steps=steps,
    first_error=chain.first_error(example, steps),
    right=task.reward(example, text)[base.OUTCOME] > 0,
  )


def fractions(
  task: Chain, responses: Sequence[Response], write: Write, completions: int
) -> list[list[float]]:
  """Share of right completions after each step, up to the first 0.

  Equal prefixes of one prompt share their completions; the last step has the
  outcome.
  """
  found: list[list[float]] = [[] for _ in responses]
  for place in range(max(len(r.steps) for r in responses)):
    prefixes: dict[tuple[str, str], list[int]] = {}
    for row, response in enumerate(responses):
      left = len(response.steps) - place
      if left < 1 or 0.0 in found[row]:
        continue
      if left == 1:
        found[row].append(float(response.right))
        continue
      begun = ''.join(response.steps[: place + 1])
      prefixes.setdefault((response.example.prompt, begun), []).append(row)
    every = write(list(prefixes), completions) if prefixes else []
    for rows, texts in zip(prefixes.values(), every, strict=True):
      example = responses[rows[0]].example
      right = [task.reward(example, text)[base.OUTCOME] for text in texts]
      for row in rows:
        found[row].append(float(np.mean(right)))
  return found


def labels(
  responses: Sequence[Response],
  share: Sequence[list[float]],
  judge_errors: float,
  rng: np.random.Generator,
) -> tuple[dict[str, list], dict[str, float]]:
  """(labels of each file, None for a row that is left out; agreement)."""
  counts = [len(r.steps) for r in responses]
  exact = [r.first_error for r in responses]
  carlo = [step_labels.first_unreached(x) for x in share]
  judge = [
    step_labels.noisy(x, n, judge_errors, rng)
    for x, n in zip(exact, counts, strict=True)
  ]
  kept = [step_labels.agree(*x) for x in zip(carlo, judge, strict=True)]
  hard = {
    name: [
      step_labels.hard_labels(x, n) for x, n in zip(firsts, counts, strict=True)
    ]
    for name, firsts in (
      ('monte_carlo', carlo),
      ('judge', judge),
      ('exact', exact),
    )
  }
  soft = [x + [0.0] * (n - len(x)) for x, n in zip(share, counts, strict=True)]
  both = [
    x if k else None for x, k in zip(hard['monte_carlo'], kept, strict=True)
  ]
  same_R = np.asarray(carlo) == np.asarray(exact)
  agreement = {
    'monte_carlo_is_exact': float(same_R.mean()),
    'judge_is_exact': float(np.mean(np.asarray(judge) == np.asarray(exact))),
    'kept': float(np.mean(kept)),
    'consensus_is_exact': float(same_R[np.asarray(kept)].mean()),
  }
  return {**hard, 'soft': soft, 'consensus': both}, agreement


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
  last = _FIRST.value + _PROMPTS.value
  base.check_split(_SPLIT.value)
  if last > task.num_prompts(_SPLIT.value):
    raise ValueError(
      f'--first={_FIRST.value} --prompts={_PROMPTS.value}: '
      f'--split={_SPLIT.value} has {task.num_prompts(_SPLIT.value)} prompts'
    )
  prompts = [task.example(_SPLIT.value, i) for i in range(_FIRST.value, last)]
  folder = pathlib.Path(_OUT.value)
  folder.mkdir(parents=True, exist_ok=True)
  with jax.set_mesh(mesh):
    key = jax.random.key(_SEED.value)
    write = writer(_CHECKPOINT.value, config, mesh, key)
    texts = write([(e.prompt, '') for e in prompts], _RESPONSES.value)
    found = [
      read(task, example, text)
      for example, own in zip(prompts, texts, strict=True)
      for text in own
      if text
    ]
    share = None
    if _COMPLETIONS.value:
      share = fractions(task, found, write, _COMPLETIONS.value)
  _dump(folder / 'bench.jsonl', map(_bench_row, found))
  wrong = [r.first_error >= 0 for r in found if r.right]
  about = {
    'responses': len(found),
    'right': float(np.mean([r.right for r in found])),
    'right_with_a_wrong_step': float(np.mean(wrong)),
    'steps': sum(len(r.steps) for r in found),
  }
  if share is not None:
    rng = np.random.default_rng(_SEED.value)
    files, agreement = labels(found, share, _ERRORS.value, rng)
    about |= agreement
    for name, own in files.items():
      rows = zip(found, own, strict=True)
      rows = [_labelled_row(*x) for x in rows if x[1] is not None]
      _dump(folder / f'{name}.jsonl', rows)
  print(json.dumps(outputs.finite(about)))


def _bench_row(response):
  return {
    'prompt': response.example.prompt,
    'steps': response.steps,
    'label': response.first_error,
    'final_answer_correct': response.right,
  }


def _labelled_row(response, own):
  return {
    'prompt': response.example.prompt,
    'completions': response.steps,
    'labels': own,
  }


def _dump(path, rows):
  with open(path, 'w', encoding='utf-8') as file:
    file.writelines(json.dumps(row) + '\n' for row in rows)


if __name__ == '__main__':
  configuration.run(main)
