"""Questions with options, answered by log-likelihood: nothing is sampled.

  prompts and their options as tokens -> the score stage's forward pass ->
  log p(option | prompt) = sum_t log p(token_t | prompt, earlier tokens)

The answer is the option with the largest number, of equal ones the first. Four
numbers give four accuracies:

  acc                the sum                        lm-eval's acc
  acc_per_character  the sum over its characters    lm-eval's acc_norm
  acc_per_byte       the sum over its UTF-8 bytes   lm-eval's acc_bytes
  acc_per_token      the sum over its tokens

What separates an option from the prompt is scored but has no length, as in
EleutherAI/lm-evaluation-harness 0.4.13, lm_eval/api/task.py. No end token is
scored. Tokens of prompt and option are encoded apart, where lm-eval encodes
both together and splits; they are the same unless a token spans the border.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from rl_jax.data.recorded import recorded_rows
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.models.transformer import ModelConfig
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.runtime import compilation, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import base
from rl_jax.types import Array, Trajectories

# The name of an accuracy -> the length by which sums are divided.
_LENGTHS = {
  'acc': lambda text, ids: 1,
  'acc_per_character': lambda text, ids: len(text),
  'acc_per_byte': lambda text, ids: len(text.encode()),
  'acc_per_token': lambda text, ids: len(ids),
}


class OptionSet(PromptSet):
  """Prompts whose options also fit; over-long ones are handled alike."""

  def __init__(self, *args: Any, max_option_tokens: int, **kwargs: Any):
    self.max_option_tokens = max_option_tokens
    task = args[0]
    if not task.supports('scored_options'):
      raise ValueError(
        f'evaluation.options = True, but the rows of {type(task).__name__} '
        'have no options, as those of tasks.ChoiceRows have'
      )
    super().__init__(*args, **kwargs)

  def _encode(self, example: base.Example) -> list[int]:
    ids = super()._encode(example)
    self.options(example)
    return ids

  def options(
    self, example: base.Example
  ) -> list[tuple[base.Option, list[int]]]:
    """The options of an example and their token ids.

    Raises:
      OverlongPromptError: names one with too many tokens.
      ValueError: names one without a token.
    """
    found = []
    for place, option in enumerate(self.task.scored_options(example)):
      ids = self.tokenizer.encode(option.before + option.text)
      if ids and len(ids) <= self.max_option_tokens:
        found.append((option, ids))
        continue
      names = ', '.join(example.meta.get(base.OPTION_FIELDS, ()))
      where = f'{self.where(example)}: option {place} of field {names!r}'
      if not ids:
        raise ValueError(f'{where}: {option.text!r} has no tokens')
      raise OverlongPromptError(
        f'{where} has {len(ids)} tokens, more than the limit of '
        f'{self.max_option_tokens} (evaluation.max_response_tokens, or '
        'rollout.max_response_tokens); raise it, or set '
        "rollout.overlong_prompt='skip'",
        len(ids),
      )
    return found


def likelihoods(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """log p of the responses of each row [B], in nats, by the score stage."""
  stats = statistics.statistics_in_microbatches(forward, params, traj, ())
  return (stats[statistics.LOGP] * traj.mask_BT).sum(axis=1)


def program(model: ModelConfig, mesh: jax.sharding.Mesh) -> Any:
  """The jitted `likelihoods` of a mesh; shapes compile on first use."""
  return jax.jit(
    likelihoods,
    static_argnames='forward',
    out_shardings=mesh_lib.replicated(mesh),
    compiler_options=compilation.options(model.platform),
  )


def padded(prompts: int, axes: Mapping[str, int]) -> int:
  """Prompts of a call that the devices of a mesh, by its axes, share evenly."""
  shards = axes['data'] * axes['fsdp']
  return -(-prompts // shards) * shards


def microbatches(
  batch: int, options: int, rows: int, axes: Mapping[str, int]
) -> int:
  """The fewest parts of a batch that have few enough rows.

  batch: prompts, padded; each has `options` rows. rows: of a part at most, but
  one prompt a device.
  """
  each = batch // (axes['data'] * axes['fsdp'])
  return next(
    parts
    for parts in range(1, each + 1)
    if each % parts == 0 and (parts == each or batch // parts * options <= rows)
  )


class OptionScores:
  """The accuracies of a set of questions with options.

  batch: prompts of a call; rows: of a microbatch at most, but one prompt a
  device. Widths are the next powers of two, so that few shapes are compiled.
  """

  def __init__(
    self,
    prompts: OptionSet,
    model: ModelConfig,
    mesh: jax.sharding.Mesh,
    batch: int,
    rows: int,
  ):
    self._prompts, self._model = prompts, model
    self._batch = padded(batch, mesh.shape)
    self._mesh, self._rows = mesh, rows
    self._program = program(model, mesh)

  def __len__(self) -> int:
    return len(self._prompts)

  def run(
    self, params: Any, total: int
  ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(right or not [n] by accuracy, rows by name) of the first prompts.

    Rows: option_logp [n, most options], NaN where a prompt has fewer, and the
    first right place, right_option [n].
    """
    found: list[np.ndarray] = []
    options: list[list[tuple[base.Option, list[int]]]] = []
    for start in range(0, total, self._batch):
      real = list(range(start, min(start + self._batch, total)))
      filled = real + [real[0]] * (self._batch - len(real))
      examples, *prompts = self._prompts.batch(filled)
      own = [self._prompts.options(example) for example in examples]
      logp_NG = self._scored(params, prompts, own)
      options += own[: len(real)]
      found += list(logp_NG[: len(real)])
    rows = {
      'option_logp': _with_nan(found, options),
      'right_option': np.asarray(
        [next(g for g, (x, _) in enumerate(own) if x.right) for own in options]
      ),
    }
    return accuracies(rows['option_logp'], options), rows

  def _scored(self, params, prompts, options) -> np.ndarray:
    """log p [N, G] of the options of a batch, 0 where there is none."""
    count = max(map(len, options))
    longest = max(len(ids) for own in options for _, ids in own)
    width = 1 << (longest - 1).bit_length()
    width = min(width, self._prompts.max_option_tokens)
    records = [
      [
        (base.RecordedResponse(), ids, [True] * len(ids))
        for ids in ([ids for _, ids in own] + [[]] * (count - len(own)))
      ]
      for own in options
    ]
    traj = recorded_rows(tuple(prompts), records, width)
    traj = processes.put(traj, mesh_lib.replicated(self._mesh))
    parts = microbatches(self._batch, count, self._rows, self._mesh.shape)
    forward = Forward(model=self._model, microbatches=parts)
    logp_B = self._program(forward=forward, params=params, traj=traj)
    return processes.read(logp_B).reshape(len(records), count)


def _with_nan(
  found: Sequence[np.ndarray], options: Sequence[Sequence[Any]]
) -> np.ndarray:
  """log p [n, most options], NaN where a prompt has fewer."""
  logp = np.full((len(found), max(map(len, options))), np.nan, np.float32)
  for n, (row, own) in enumerate(zip(found, options, strict=True)):
    logp[n, : len(own)] = row[: len(own)]
  return logp


def accuracies(
  logp_NG: np.ndarray,
  options: Sequence[Sequence[tuple[base.Option, list[int]]]],
) -> dict[str, np.ndarray]:
  """1 where the chosen option is right, else 0, [n] by the names above.

  logp_NG: NaN where a prompt has fewer options. A log-likelihood that is not
  finite is never chosen, and of equal numbers the first one is; where none is
  finite, no option is chosen.
  """
  found = {}
  for name, length in _LENGTHS.items():
    right = []
    for row, own in zip(logp_NG, options, strict=True):
      sums = row[: len(own)].astype(np.float64)
      lengths = [length(option.text, ids) for option, ids in own]
      scores = np.where(np.isfinite(sums), sums / lengths, -np.inf)
      best = int(np.argmax(scores))
      right.append(float(np.isfinite(scores[best]) and own[best][0].right))
    found[name] = np.asarray(right)
  return found
