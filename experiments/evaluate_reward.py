"""A reward model on comparisons, by the rules of RewardBench 2.

python -m experiments.evaluate_reward --reward_model=runs/rm --data=bench.jsonl

Rows are {prompt, chosen, rejected} with a text or a list of texts, and maybe
subset and id, as in RewardBench 2: the score of a subset is how often a right
completion has the largest score; of the subset Ties see
experiments/rewards/reward_bench.py. Pairs may also be conversations or have
their prompt in front of both responses, as tasks.PreferenceRows reads them.
The mean and the standard deviation of all scores are printed for
RewardModel(center=..., scale=...), and how well sigmoid(difference of two
scores) is calibrated, see calibration. --chat reads
prompts that are texts as a user's turn in the template of the model.
--scores_out writes the rows with the scores, as tasks.PreferenceRows reads
them: {prompt, chosen, rejected, score_chosen, score_rejected} if all rows are
pairs, else {prompt, responses, scores}.

--steps is for models of --method=process_reward_model: rows are those of
ProcessBench, and the first wrong step is the first whose score is below
--threshold. F1 is of the accuracies on responses with an error and without.
Where rows say final_answer_correct, the best of the responses to each problem
is taken by the product, the least and the last of its steps' scores, too.
--step_end='' takes steps as they are, for models that tasks.StepRows trained.

Released models of steps:
  Qwen2.5-Math-PRM-7B  --steps --chat --step_end= '--step_token=<extra_0>'
    '--system=Please reason step by step, and put your final answer within
    \\boxed{}.'
  RLHFlow's            --steps --step_end= --step_labels=+,-
A token of --step_token follows every step, and the score is read there.
With --step_labels every step is a turn of the user, the first one after the
problem, and the score is the probability of the first label as the answer,
among both.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import json
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from experiments.rewards import reward_bench
from experiments.rewards import step_labels as labels
from rl_jax.data.completions import closing_ids, encode_recorded
from rl_jax.data.recorded import recorded_rows
from rl_jax.judging.step_labels import step_labels
from rl_jax.learning.final_values import (
  final_values,
  label_values,
  token_values,
)
from rl_jax.learning.statistics import Forward
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import preference_forms, templates
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.preference_forms import STEP_END, Text
from rl_jax.tasks.sources import BadRowError

_MODEL = flags.DEFINE_string(
  'reward_model',
  None,
  'Work directory or model with a value head.',
  required=True,
)
_DATA = flags.DEFINE_string(
  'data', None, 'JSONL, CSV or Parquet file of comparisons.', required=True
)
_CHAT = flags.DEFINE_bool('chat', False, 'Prompts are turns of a user.')
_BATCH = flags.DEFINE_integer(
  'batch_size', 16, 'Completions at a time.', lower_bound=1
)
_SCORES_OUT = flags.DEFINE_string(
  'scores_out', None, 'JSONL file for the rows with their scores.'
)
_OUT = flags.DEFINE_string('out', None, 'JSON file of what is printed.')
_STEPS = flags.DEFINE_bool(
  'steps', False, 'Rows are {problem, steps, label} of ProcessBench.'
)
_THRESHOLD = flags.DEFINE_float(
  'threshold', 0.5, 'A step with a smaller score is wrong.', 0.0, 1.0
)
_STEP_TOKEN = flags.DEFINE_string(
  'step_token', '', 'A token of the model after every step.'
)
_STEP_LABELS = flags.DEFINE_list(
  'step_labels', [], 'Two answers of one token, for a right and a wrong step.'
)
_SYSTEM = flags.DEFINE_string(
  'system', '', 'Message of the system, with --chat.'
)
_STEP_END = flags.DEFINE_string(
  'step_end', STEP_END, r"What ends a step, as '\n\n'."
)

MAX_ROW_BYTES = 10_000_000


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Right and wrong responses to a prompt, all texts or all conversations.

  arguments: variables of the chat template, of conversations.
  """

  subset: str
  id: str
  prompt: Text
  right: list[Text]
  wrong: list[Text]
  arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


def main(argv):
  """Scores all completions and prints the sections as JSON."""
  del argv
  if _SCORES_OUT.value is not None:
    if _STEPS.value:
      raise ValueError('--scores_out is of comparisons, not for --steps')
    outputs.check_file('scores_out', _SCORES_OUT.value)
  if _OUT.value is not None:
    outputs.check_file('out', _OUT.value)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  evaluate = by_steps if _STEPS.value else by_comparisons
  with jax.set_mesh(mesh):
    loaded = policy_lib.load_checkpoint(_MODEL.value, mesh)
    if not loaded[0].value_head and not _STEP_LABELS.value:
      raise ValueError(f'--reward_model={_MODEL.value} has no value head')
    found = outputs.finite(evaluate(loaded))
  if _OUT.value is not None:
    outputs.write_json(_OUT.value, found)
  print(json.dumps(found, indent=2))


def by_comparisons(loaded) -> dict[str, Any]:
  """The sections of RewardBench 2; loaded: (model, params, tokenizer)."""
  comparisons = read(_DATA.value)
  pairs = [
    (one.prompt, text, one.arguments)
    for one in comparisons
    for text in (*one.right, *one.wrong)
  ]
  model, params, tokenizer = loaded
  found = scores(model, params, tokenizer, pairs, _CHAT.value, _BATCH.value)
  rows = scored_rows(comparisons, found.tolist())
  if _SCORES_OUT.value is not None:
    pairs = all(len(row['scores']) == 2 for row in rows)
    written = map(as_pair, rows) if pairs else rows
    outputs.write_rows(_SCORES_OUT.value, written)
  judged = []
  for one, row in zip(comparisons, rows, strict=True):
    own, count = row['scores'], len(one.right)
    judged.append((one.subset, one.id, own[:count], own[count:]))
  gaps = [x - y for *_, right, wrong in judged for x in right for y in wrong]
  return {
    **reward_bench.sections(judged),
    'score_mean': float(found.mean()),
    'score_std': float(found.std()),
    'completions': len(found),
    **calibration(gaps),
  }


def scored_rows(
  comparisons: list[Comparison], results: list[float]
) -> list[dict[str, Any]]:
  """{prompt, responses, scores}, the right responses first.

  results: the scores of all responses, in the order of the comparisons.
  """
  rows, at = [], 0
  for one in comparisons:
    texts, more = [*one.right, *one.wrong], dict(one.arguments)
    own = results[at : at + len(texts)]
    fields = {'tools': more.pop('tools', None), 'chat_template_kwargs': more}
    fields = {name: value for name, value in fields.items() if value}
    rows.append(
      {'prompt': one.prompt, 'responses': texts, 'scores': own, **fields}
    )
    at += len(texts)
  return rows


def as_pair(row: dict[str, Any]) -> dict[str, Any]:
  """One of `scored_rows` with one right and one wrong response, with labels."""
  names, more = ('chosen', 'rejected'), dict(row)
  responses = zip(names, more.pop('responses'), strict=True)
  scored = zip(names, more.pop('scores'), strict=True)
  return {
    **more,
    **dict(responses),
    **{f'score_{name}': score for name, score in scored},
  }


def by_steps(loaded) -> dict[str, Any]:
  """F1 of the first wrong step, as ProcessBench has it."""
  step_end = configuration.unescaped(_STEP_END.value)
  rows = read_steps(_DATA.value, step_end)
  model, params, tokenizer = loaded
  texts = [row[:2] for row in rows]
  if labels_of := _STEP_LABELS.value:
    found = label_scores(
      model, params, tokenizer, texts, labels_of, _BATCH.value
    )
  elif token := _STEP_TOKEN.value:
    encoded = [
      marked_steps(tokenizer, *row, token=token, system=_system())
      for row in texts
    ]
    found = scores_at(token_values, model, params, encoded, _BATCH.value)
  else:
    found = step_scores(
      model, params, tokenizer, texts, _CHAT.value, _BATCH.value
    )
  predicted = [first_error(x, _THRESHOLD.value) for x in found]
  result = f1(predicted, [row[2] for row in rows])
  right = [row[3] for row in rows if row[3] is not None]
  if len(right) == len(rows):
    result |= labels.best_of([row[0] for row in rows], right, found)
  return {**result, 'responses': len(rows)}


def read_steps(
  path: str, step_end: str = STEP_END
) -> list[tuple[str, tuple[str, ...], int, bool | None]]:
  """(prompt, steps, index of the first wrong one or -1, final_answer_correct).

  The last is None where the row does not say it.


  Raises: BadRowError naming file and row of a field that is missing or wrong.
  """
  found = []
  for where, record in _records(path):
    name = 'problem' if 'problem' in record else 'prompt'
    prompt = rows_lib.as_text(record.get(name), name, where)
    steps, label = _texts(record, 'steps', where), record.get('label')
    if type(label) is not int or not -1 <= label < len(steps):
      raise BadRowError(
        where, 'wrong_label', f"field 'label' is {label!r}, no step and not -1"
      )
    right = record.get('final_answer_correct')
    if right is not None and type(right) is not bool:
      raise BadRowError(
        where, 'wrong_label', f"field 'final_answer_correct' is {right!r}"
      )
    ended = tuple(_ended(step, step_end) for step in steps)
    found.append((prompt, ended, label, right))
  return found


def _ended(step, end):
  """The step with its end, once."""
  while end and step.endswith(end):
    step = step.removesuffix(end)
  return step + end


def _records(path):
  """(place, row) of every row; raises ValueError without one."""
  rows = list(rows_lib.read_records(path, 'train', MAX_ROW_BYTES, None))
  if not rows:
    raise ValueError(f'{path} has no rows')
  for file, number, record in rows:
    if isinstance(record, BadRowError):
      raise record
    yield f'{file}{number}', record


def read(path: str) -> list[Comparison]:
  """The rows.

  Raises: BadRowError naming file and row of a field that is missing or wrong.
  """
  found = []
  right: list[Text]
  wrong: list[Text]
  for where, record in _records(path):
    sides = [record.get(name) for name in ('chosen', 'rejected')]
    turns = any(
      isinstance(side, (list, tuple))
      and any(isinstance(x, Mapping) for x in side)
      for side in sides
    )
    if turns or (record.get('prompt') is None and all(sides)):
      prompt, pair = preference_forms.parse(record, 'pair', where)
      right, wrong = ([recorded.messages or recorded.text] for recorded in pair)
    else:
      right = _texts(record, 'chosen', where)
      wrong = _texts(record, 'rejected', where)
      prompt = rows_lib.as_text(record.get('prompt'), 'prompt', where)
    arguments = preference_forms.arguments(record, prompt, where)
    found.append(
      Comparison(
        subset=str(record.get('subset', 'all')),
        id=str(record.get('id', where)),
        prompt=prompt,
        right=right,
        wrong=wrong,
        arguments=arguments,
      )
    )
  return found


def _texts(record, name, where) -> list[Text]:
  value = record.get(name)
  if value is None:
    present = sorted(map(str, record))
    problem = f'field {name!r} is missing; present: {present}'
    raise BadRowError(where, 'missing_field', problem)
  value = [value] if isinstance(value, str) else value
  is_list = isinstance(value, (list, tuple)) and value
  if not is_list or not all(isinstance(text, str) for text in value):
    raise BadRowError(
      where, 'wrong_type', f'field {name!r} is not text or list of texts'
    )
  return list(value)


def scores(model, params, tokenizer, pairs, chat, batch_size) -> np.ndarray:
  """The value after the last token of each (prompt, completion), [n].

  A pair may have arguments of the chat template, too.

  Raises: ValueError if one is longer than the positions of the model.
  """
  encoded = [_encoded(tokenizer, chat, *pair) for pair in pairs]
  chat = chat or any(not isinstance(prompt, str) for prompt, *_ in pairs)
  if chat and model.unscored_id is not None:  # as `transformers` reads chats
    more = closing_ids(tokenizer)
    encoded = [
      (prompt, (recorded, [*ids, *more], [*trained, *(True for _ in more)]))
      for prompt, (recorded, ids, trained) in encoded
    ]
  return _values(final_values, model, params, encoded, batch_size)


def step_scores(
  model, params, tokenizer, rows, chat, batch_size
) -> list[np.ndarray]:
  """sigmoid(value) after each step of each (prompt, steps)."""
  encoded = []
  for prompt, steps in rows:
    zeros = tuple(0.0 for _ in steps)
    recorded = RecordedResponse(
      text=''.join(steps), steps=steps, step_labels=zeros
    )
    encoded.append(_encoded(tokenizer, chat, prompt, recorded))
  values = _values(token_values, model, params, encoded, batch_size)
  records = [recorded for _, (recorded, *_) in encoded]
  ends = step_labels(records, tokenizer, values.shape[1]) >= 0
  probability = 1 / (1 + np.exp(-values))
  return [row[end] for row, end in zip(probability, ends, strict=True)]


def _system() -> str | None:
  """The message of the system of --chat; None: prompts are plain texts."""
  if _SYSTEM.value and not _CHAT.value:
    raise ValueError('--system needs --chat')
  return _SYSTEM.value if _CHAT.value else None


def token_id(tokenizer, text: str) -> int:
  """The token that is the text. Raises: ValueError if it is none or several."""
  begins = tokenizer.encode_prompt(('',))  # every text of the model
  ids = tokenizer.encode_prompt((text,))[len(begins) :]
  if len(ids) != 1:
    raise ValueError(
      f'{text!r} is {len(ids)} tokens of the model, expected one'
    )
  return ids[0]


def marked_steps(
  tokenizer, problem: str, steps: Sequence[str], *, token: str, system
) -> tuple[list[int], list[int], list[int]]:
  """(prompt, response, where the score of each step is read in it).

  system: None: the problem is plain text; else the message before it, or ''.
  """
  mark, ids, ends = token_id(tokenizer, token), [], []
  for step in steps:
    ids += [*tokenizer.encode(step), mark]
    ends.append(len(ids) - 1)
  fields: dict[str, Any] = {}
  if system is not None:
    said = [{'role': 'system', 'content': system}] * bool(system)
    fields['messages'] = (*said, {'role': 'user', 'content': problem})
  example = Example(prompt=problem, answer='', id=0, **fields)
  return templates.encode_prompt(example, tokenizer), ids, ends


def label_scores(
  model, params, tokenizer, rows, labels: Sequence[str], batch_size
) -> list[np.ndarray]:
  """P(labels[0]) / (P(labels[0]) + P(labels[1])) as the answer to each step.

  Earlier steps are answered by labels[0].
  Source: QwenLM/ProcessBench, code/run_eval_prm_rlhflow.py.
  """
  if len(labels) != 2:
    raise ValueError(f'--step_labels={",".join(labels)}: expected two')
  ids = (token_id(tokenizer, labels[0]), token_id(tokenizer, labels[1]))
  encoded = []
  for problem, steps in rows:
    first, *later = steps
    user = {'role': 'user', 'content': f'{problem}\n\n{first}'}
    answer = {'role': 'assistant', 'content': labels[0]}
    said = [answer]
    for step in later:
      said += [{'role': 'user', 'content': step}, answer]
    example = Example(prompt='', answer='', id=0, messages=(user,))
    recorded = RecordedResponse(messages=tuple(said))
    response, trained = encode_recorded(example, recorded, tokenizer)
    found = np.flatnonzero(np.diff([0, *map(int, trained)]) == 1)
    prompt = templates.encode_prompt(example, tokenizer)
    encoded.append((prompt, response, found.tolist()))
  function = functools.partial(_label_values, ids)
  return scores_at(function, model, params, encoded, batch_size)


def _label_values(ids, forward, params, traj):
  return label_values(forward, ids, params, traj)


def scores_at(function, model, params, encoded, batch_size) -> list[np.ndarray]:
  """sigmoid of the values at some tokens of each response.

  encoded: (prompt, response, those places), in tokens.
  """
  records = [
    (prompt, (RecordedResponse(), ids, [True] * len(ids)))
    for prompt, ids, _ in encoded
  ]
  values = _values(function, model, params, records, batch_size)
  probability = 1 / (1 + np.exp(-values))
  places = [ends for _, _, ends in encoded]
  return [row[x] for row, x in zip(probability, places, strict=True)]


def _values(function, model, params, encoded, batch_size):
  """Values of all rows, padded to the next power of two of the longest."""

  def width(sizes):
    return 1 << (max(sizes) - 1).bit_length()

  P = width(len(prompt) for prompt, _ in encoded)
  T = width(len(record[1]) for _, record in encoded)
  if P + T > model.max_positions:
    raise ValueError(
      f'prompts of {P} and completions of {T} tokens, but the model has '
      f'{model.max_positions} positions'
    )
  score = jax.jit(function, static_argnums=0)
  found = []
  for start in range(0, len(encoded), batch_size):
    part = encoded[start : start + batch_size]
    padded = part + part[:1] * (batch_size - len(part))
    prompt, mask = (
      np.zeros((batch_size, P), x) for x in (np.int32, np.float32)
    )
    for row, (ids, _) in enumerate(padded):
      prompt[row, P - len(ids) :] = ids
      mask[row, P - len(ids) :] = 1
    arrays = (prompt, mask, np.arange(batch_size, dtype=np.int32))
    traj = recorded_rows(arrays, [[record] for _, record in padded], T)
    values = score(Forward(model=model), params, jax.device_put(traj))
    found.append(np.asarray(values)[: len(part)])
  return np.concatenate(found)


def _encoded(tokenizer, chat, prompt, response, arguments=None):
  """(ids of the prompt, the record) of a text, of messages or of a record."""
  fields: dict[str, Any] = {'prompt': '', 'answer': '', 'id': 0}
  if not isinstance(prompt, str):
    fields |= {'messages': prompt, 'arguments': arguments or {}}
  elif chat:
    fields['messages'] = ({'role': 'user', 'content': prompt},)
  else:
    fields['prompt'] = prompt
  example, recorded = Example(**fields), response
  if isinstance(response, str):
    recorded = RecordedResponse(text=response)
  elif not isinstance(response, RecordedResponse):
    recorded = RecordedResponse(messages=response)
  ids = templates.encode_prompt(example, tokenizer)
  return ids, (recorded, *encode_recorded(example, recorded, tokenizer))


BINS = 10  # of equal width, from 0.5 to 1


def calibration(gaps: Sequence[float]) -> dict[str, float]:
  """pairwise_accuracy, pairwise_nll and calibration_error of s_right - s_wrong.

  p = sigmoid(s_right - s_wrong) is the probability that the model gives to the
  label of a comparison. The confidence of its own choice is max(p, 1 - p), and
  it is calibrated if choices of confidence c are right in the fraction c of
  cases.

    calibration_error = sum over bins of n_bin / n |mean confidence - accuracy|

  Equal scores are half right. nll is the mean of -log p, in nats.
  """
  gap = np.asarray(gaps, np.float64)
  right = 0.5 * (1 + np.sign(gap))
  confidence = 1 / (1 + np.exp(-np.abs(gap)))
  place = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
  differences = np.bincount(place, confidence - right, BINS)
  return {
    'pairwise_accuracy': float(right.mean()),
    'pairwise_nll': float(np.logaddexp(0, -gap).mean()),
    'calibration_error': float(np.abs(differences).sum() / len(gap)),
  }


def first_error(scores: Sequence[float] | np.ndarray, threshold: float) -> int:
  """The first step whose score lies below the threshold; -1: none."""
  below = [i for i, score in enumerate(scores) if score < threshold]
  return below[0] if below else -1


def f1(predicted: Sequence[int], label: Sequence[int]) -> dict[str, float]:
  """Accuracies on responses with an error and without, and 2 a b / (a + b).

  F1 is 0 where both accuracies are. NaN without responses of a kind.
  Source: QwenLM/ProcessBench, code/run_eval.py (by a digest of the code).
  """
  label_N = np.asarray(label)
  same, wrong = np.asarray(predicted) == label_N, label_N >= 0

  def mean(x):
    return float(x.mean()) if x.size else float('nan')

  a, b = mean(same[wrong]), mean(same[~wrong])
  score = 0.0 if a + b == 0 else 2 * a * b / (a + b)
  return {'acc_error': a, 'acc_correct': b, 'f1': score}


if __name__ == '__main__':
  configuration.run(main)
