"""Keeps a part of the rows of a file, by what models or the rows say of them.

python -m experiments.select_rows --data=pool.jsonl --rule=loss_reduction
  --model=runs/prior --conditional=runs/target --keep=0.25 --out=kept.jsonl

--data has rows with prompt and response in a form of tasks.PreferenceRows; the
first response counts. --rule gives each row a score:
  random          a draw by --seed
  length          characters of the response
  loss            mean loss of the response's tokens under --model, in nats
  loss_reduction  that under --model less that under --conditional, which is
                  --model after training on a few rows of the target
                  (CoLoR-Filter)
  joint_rank      --difficulty_weight * rank of the number in the field
                  --difficulty + the rest * rank of the length (Select2Reason)
  weight_change   TOPSIS of how a step of SGD with --step_size on the row
                  changes the norm of the output layer of --model (DON), and how
                  far it moves that layer (NOD); both are costs (DONOD), or
                  with --growth=benefit only the latter is
  reward          --reward of the response in --responses, a file that
                  `experiments.evaluate --out` has written for these rows
                  (BLEUBERI: --part=lowest, the hardest prompts)
  spread          how far apart the outcomes of the samples in --outcomes are,
                  of which the same program writes several for each row: largest
                  less least, or by --measure (eva)
  deficiency      the share of wrong samples in --outcomes, and among rows with
                  as many the loss of the response under --model (iRFT)
  unsolved        keeps every row with a wrong sample in --outcomes; --keep is
                  the share of the others, which --seed draws (VerIPO: 0.2)
--keep is a share below 1 or a number of rows, --part which of them. Rows are
written as they were, in their order, with --draw drawn with probability score /
sum of the scores in place of the best; --scores_out has {row, score, kept} of
all. Prints one line of JSON, with the digest of the scores and, for each field
of --describe, the mean of its numbers or the counts of its texts, of all rows
and of those that are kept.
"""

from collections import Counter
from collections.abc import Sequence
import hashlib
import json
from typing import Any

from absl import flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.data import row_selection
from rl_jax.measures import row_scores
from rl_jax.models.files import hf_classifier
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import PreferenceRows, RewardFunctions
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.sources import BadRowError

# What each rule needs, and no other may have.
_NEEDS = {
  'random': (),
  'length': (),
  'loss': ('model',),
  'loss_reduction': ('model', 'conditional'),
  'joint_rank': ('difficulty',),
  'weight_change': ('model',),
  'reward': ('reward', 'responses'),
  'spread': ('outcomes',),
  'deficiency': ('outcomes', 'model'),
  'unsolved': ('outcomes',),
}
_INPUTS = (
  *('model', 'conditional', 'difficulty', 'reward', 'responses', 'outcomes'),
)
_MAX_ROW_BYTES = 10_000_000

_DATA = flags.DEFINE_string('data', None, 'Rows, as JSONL.', required=True)
_RULE = flags.DEFINE_enum('rule', None, _NEEDS, 'The score.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_KEEP = flags.DEFINE_float(
  'keep', 0.1, 'Share of the rows, or from 1 on their number.', 0.0, 1e12
)
_PART = flags.DEFINE_enum(
  'part', 'highest', row_selection.PARTS, 'By their scores.'
)
flags.DEFINE_string('model', None, 'Work directory or model.')
flags.DEFINE_string('conditional', None, 'The same, trained on the target.')
flags.DEFINE_string('difficulty', None, 'Field with a number.')
flags.DEFINE_string('reward', None, 'FILE.py:FUNCTION or MODULE:FUNCTION.')
flags.DEFINE_string('responses', None, 'Of `experiments.evaluate --out`.')
flags.DEFINE_string('outcomes', None, 'The same, with --num_samples.')
_MEASURE = flags.DEFINE_enum(
  'measure', 'range', row_selection.SPREADS, 'Of spread.'
)
_DRAW = flags.DEFINE_bool('draw', False, 'Draw rows by their scores.')
_WEIGHT = flags.DEFINE_float(
  'difficulty_weight', 0.25, 'Of joint_rank.', 0.0, 1.0
)
_STEP = flags.DEFINE_float('step_size', 1e-4, 'Of weight_change.', 1e-12, 1e12)
_DESCRIBE = flags.DEFINE_multi_string('describe', [], 'A field; repeated.')
_GROWTH = flags.DEFINE_enum(
  'growth', 'cost', ('cost', 'benefit'), 'Meaning of DON in weight_change.'
)
_SCORES_OUT = flags.DEFINE_string('scores_out', None, 'JSONL of all scores.')
_PROMPT = flags.DEFINE_integer(
  'max_prompt_tokens', 256, 'A longer prompt is an error.', lower_bound=1
)
_RESPONSE = flags.DEFINE_integer(
  'max_response_tokens', 256, 'A longer one is an error.', lower_bound=1
)
_BATCH = flags.DEFINE_integer('batch_size', 64, 'Rows at a time.', 1)
_SEED = flags.DEFINE_integer('seed', 0, 'Of random and --draw.', lower_bound=0)


def main(argv):
  """Scores the rows, writes those that are kept."""
  del argv
  check_flags()
  records = read(_DATA.value)
  task = PreferenceRows(path=_DATA.value, max_row_bytes=_MAX_ROW_BYTES)
  count = number(_KEEP.value, len(records))
  score_N = scores(task, records)
  kept = chosen(score_N, count)
  outputs.write_rows(_OUT.value, (records[row] for row in kept))
  stays = set(kept)
  lines = [
    {'row': row, 'score': float(x), 'kept': row in stays}
    for row, x in enumerate(score_N)
  ]
  if _SCORES_OUT.value:
    outputs.write_rows(_SCORES_OUT.value, lines)
  digest = hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]
  about = {
    'out': _OUT.value,
    'rule': _RULE.value,
    'rows': len(records),
    'kept': len(kept),
    'score_mean': float(score_N.mean()),
    'score_mean_kept': float(score_N[kept].mean()),
    'digest': digest,
  }
  own = [records[row] for row in kept]
  for name in _DESCRIBE.value:
    about |= {name: described(records, name)}
    about |= {f'{name}_kept': described(own, name)}
  print(json.dumps(outputs.finite(about)))


def chosen(score_N: np.ndarray, count: int) -> list[int]:
  """The rows that are kept, in their order; count: by --keep of all of them."""
  rng = np.random.default_rng(_SEED.value)
  if _RULE.value == 'unsolved':
    return row_selection.unsolved(score_N, _KEEP.value, rng).tolist()
  if _DRAW.value:
    return row_selection.drawn(score_N, count, rng).tolist()
  return row_selection.keep(score_N, count, _PART.value).tolist()


def described(records: Sequence[dict[str, Any]], name: str) -> Any:
  """The mean of the numbers in a field, or how often each text is there."""
  values = [record.get(name) for record in records]
  numbers = [x for x in values if isinstance(x, (int, float))]
  if len(numbers) == len(values):
    return float(np.mean(numbers))
  return dict(sorted(Counter(map(str, values)).items()))


def check_flags() -> None:
  """Raises ValueError for flags that do not go together."""
  rule, values = _RULE.value, flags.FLAGS
  for name in _INPUTS:
    given = values[name].value is not None
    if given != (name in _NEEDS[rule]):
      needed = ' and '.join(f'--{x}' for x in _NEEDS[rule]) or 'none of these'
      raise ValueError(
        f'--rule={rule} with {"" if given else "no "}--{name}: it needs '
        f'{needed}'
      )
  for flag, path in (('out', _OUT.value), ('scores_out', _SCORES_OUT.value)):
    if path is not None:
      outputs.check_file(flag, path)
      outputs.check_not_source('data', _DATA.value, path)
  if rule == 'unsolved' and (
    _DRAW.value or _PART.value != 'highest' or _KEEP.value >= 1
  ):
    raise ValueError(
      f'--rule=unsolved with --keep={_KEEP.value}, --part={_PART.value}, '
      f'--draw={_DRAW.value}: --keep is a share below 1, without parts or '
      'draws'
    )
  if _DRAW.value and _PART.value != 'highest':
    raise ValueError(f'--draw with --part={_PART.value}: it has no parts')
  if _OUT.value == _SCORES_OUT.value:
    raise ValueError(f'--out={_OUT.value} is --scores_out, too: give another')


def read(path: str) -> list[dict[str, Any]]:
  """The rows as they are.

  Raises: BadRowError names a row that is none, ValueError a file without rows.
  """
  found = []
  for _, _, record in rows_lib.read_records(
    path, 'train', _MAX_ROW_BYTES, None
  ):
    if isinstance(record, BadRowError):
      raise record
    found.append(dict(record))
  if not found:
    raise ValueError(f'--data={path} has no rows')
  return found


def number(keep: float, total: int) -> int:
  """Rows to keep: a share below 1 of all of them, rounded down, or as many.

  Raises: ValueError if that is none of them, or more than there are.
  """
  if not keep > 0:
    raise ValueError(f'--keep={keep}: it is above 0')
  count = int(keep * total + 1e-9) if keep < 1 else int(keep)
  if count != keep and keep >= 1:
    raise ValueError(f'--keep={keep}: from 1 on it is a whole number of rows')
  if not 1 <= count <= total:
    raise ValueError(f'--keep={keep} of {total} rows would keep {count}')
  return count


def scores(task: PreferenceRows, records: list[dict[str, Any]]) -> np.ndarray:
  """The score of each row by --rule, float64 [N]."""
  rule, count = _RULE.value, len(records)
  if rule == 'random':
    return np.random.default_rng(_SEED.value).random(count)
  if rule == 'spread':
    outcome_NK = outcomes(flags.FLAGS.outcomes, count)
    return row_selection.informativeness(outcome_NK, _MEASURE.value)
  if rule == 'unsolved':
    return row_selection.wrong_shares(outcomes(flags.FLAGS.outcomes, count))
  if rule == 'reward':
    return rewards(task, flags.FLAGS.reward, flags.FLAGS.responses)
  if rule in ('length', 'joint_rank'):
    length_N = np.array([float(len(text)) for text in responses(task)])
    if rule == 'length':
      return length_N
    difficulty_N = field(records, flags.FLAGS.difficulty)
    return row_selection.joint_rank(difficulty_N, length_N, _WEIGHT.value)
  return model_scores(task, rule)


def responses(task: PreferenceRows) -> list[str]:
  """The first response of each row."""
  rows = range(task.num_prompts('train'))
  return [task.target(task.example('train', row)) for row in rows]


def field(records: list[dict[str, Any]], name: str) -> np.ndarray:
  """The numbers in a field.

  Raises: ValueError naming the first row without one.
  """
  found = []
  for place, record in enumerate(records):
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
      raise ValueError(
        f'--difficulty={name}: row {place} has {value!r}, which is not a number'
      )
    found.append(float(value))
  return np.array(found)


def outcomes(path: str, total: int) -> np.ndarray:
  """The outcomes of the samples of each row in a file of `evaluate --out`.

  Float64 [N, K], NaN where a sample was not judged.
  Raises: ValueError if it has no samples of every row.
  """
  with open(path) as file:
    samples = json.load(file).get('samples')
  if not isinstance(samples, list) or len(samples) != total:
    count = len(samples) if isinstance(samples, list) else 'no'
    raise ValueError(
      f'--outcomes={path} has samples of {count} rows, --data {total} rows: '
      'evaluate all of them (--limit) with --num_samples'
    )
  return np.array(
    [[np.nan if x is None else x for x in own] for own in samples]
  )


def rewards(task: PreferenceRows, function: str, path: str) -> np.ndarray:
  """The reward of the response to each row in a file of `evaluate --out`.

  Raises: ValueError if it has other than one response a row.
  """
  with open(path) as file:
    texts = json.load(file).get('responses')
  total = task.num_prompts('train')
  if not isinstance(texts, list) or len(texts) != total:
    count = len(texts) if isinstance(texts, list) else 'no'
    raise ValueError(
      f'--responses={path} has {count} responses, --data {total} rows: '
      'evaluate all of them, greedily (--limit)'
    )
  judge = RewardFunctions(task, {function: 1.0})
  found = []
  for row, text in enumerate(texts):
    parts = judge.reward(task.example('train', row), text)
    weights = judge.reward_weights
    found.append(sum(weights.get(name, 0.0) * x for name, x in parts.items()))
  return np.array(found)


def model_scores(task: PreferenceRows, rule: str) -> np.ndarray:
  """Scores that one or two models give."""
  names = ('model', 'conditional') if rule == 'loss_reduction' else ('model',)
  kind = 'gradients' if rule == 'weight_change' else 'losses'
  limits = _PROMPT.value, _RESPONSE.value
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  found, norm = [], 0.0
  with jax.set_mesh(mesh):
    for name in names:
      source = str(flags.FLAGS[name].value)
      hf_classifier.check_writes(source)
      loaded = policy_lib.load_checkpoint(source, mesh)
      if kind == 'gradients':
        norm = row_scores.output_norm(*loaded[:2])
      found.append(
        row_scores.score_rows(loaded, task, limits, kind, _BATCH.value)
      )
  if rule == 'loss':
    return found[0]['nll']
  if rule == 'deficiency':
    wrong_N = row_selection.wrong_shares(
      outcomes(flags.FLAGS.outcomes, task.num_prompts('train'))
    )
    return row_selection.deficiency(wrong_N, found[0]['nll'])
  if rule == 'loss_reduction':
    return found[0]['nll'] - found[1]['nll']
  changes = row_selection.weight_changes(
    found[0]['inner'], found[0]['square'], norm, _STEP.value
  )
  benefits = (_GROWTH.value == 'benefit', False)
  return row_selection.closeness(np.stack(changes, axis=1), benefits)


if __name__ == '__main__':
  configuration.run(main)
