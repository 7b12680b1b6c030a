"""Rows from data instead of the sampler: the responses that a task records.

  prompts of the selector -> recorded responses as tokens -> score -> batch

They go through the same score, batch and update stages as sampled rows. Their
behaviour log-probs are those of the score stage: there was no sampler.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import itertools
from typing import Any
import zlib

import jax
import numpy as np

from rl_jax.data.completions import encode_recorded
from rl_jax.decoding.stop import Stop, make_stop
from rl_jax.episodes.episode_prompts import begun
from rl_jax.judging.step_labels import step_labels
from rl_jax.method import Method
from rl_jax.pieces import row_inputs
from rl_jax.rollouts.host_selector import PromptSelector
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.rollouts.rounds import Collected, Draw, Round
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.tasks.environments.base import is_environment
from rl_jax.types import ENVIRONMENT, PAD, POLICY, Trajectories

UNLABELLED = 'unlabelled_B'
_DISTANCE = 'semantic_distance_B'  # of chosen rows, 0 on others


class RecordedSet(PromptSet):
  """Prompts whose recorded responses also fit; over-long ones are handled
  alike. Those of an environment end with its first observation.

  num_responses: the first of each prompt that count; None: all.
  """

  def __init__(
    self,
    *args: Any,
    max_response_tokens: int,
    num_responses: int | None = None,
    **kwargs: Any,
  ):
    self.max_response_tokens = max_response_tokens
    self.num_responses = num_responses
    super().__init__(*args, **kwargs)

  def _example(self, example_id: int) -> base.Example:
    example = super()._example(example_id)
    if not is_environment(self.task):
      return example
    return begun(self.task)([example], {})[0]

  def _encode(self, example: base.Example) -> list[int]:
    ids = super()._encode(example)
    self.responses(example)
    return ids

  def check_labels(self, method: Method) -> None:
    """Raises ValueError if a piece reads what the data do not have, or if the
    method learns every response of pairs, the rejected one, too. Each part of a
    mixture is examined.
    """
    sizes = self.task.sizes(self.split)
    starts = itertools.accumulate(sizes, initial=0)
    for size, start in zip(sizes, starts, strict=False):
      if size:
        example = self._example(start)
        self._check_labels(method, self.task.recorded(example))

  def _check_labels(self, method, records):
    first, labels = records[0], [x.label for x in records[: self.num_responses]]
    if (
      0 in labels
      and 1 in labels
      and all(loss.imitates for loss in method.losses)
    ):
      raise ValueError(
        f'rollout.group_size = {len(labels)}: the method would learn the '
        'rejected responses as the chosen ones; set it to 1, which reads the '
        'chosen ones only'
      )
    for path, piece in method.pieces():
      if first.distance is None and _DISTANCE in piece.reads:
        raise ValueError(
          f'method.{path} reads the field semantic_distance of pairs, which '
          f'the data of {type(self.task).__name__} do not have; '
          'experiments.papers.preferences.embed_pairs writes it'
        )
      if UNLABELLED in piece.reads and None not in labels:
        raise ValueError(
          f'method.{path} reads responses without a label, and the first '
          f'{len(labels)} of a row have one each: give rows the field samples, '
          'and set rollout.group_size to all responses of a row'
        )
      if first.label is None and piece.labelled:
        raise ValueError(
          f'method.{path} reads labels (chosen, rejected; true, false), which '
          f'the data of {type(self.task).__name__} do not have; for scores '
          'there are preferences.BestWorst and AllPairs'
        )

  def responses(
    self, example: base.Example
  ) -> list[tuple[base.RecordedResponse, list[int], list[bool]]]:
    """(response, its token ids, which are trained) of the records.

    Raises: OverlongPromptError names a response with too many tokens.
    """
    where, found = self.where(example), []
    records = self.task.recorded(example)[: self.num_responses]
    for number, recorded in enumerate(records):
      try:
        ids, trained = encode_recorded(example, recorded, self.tokenizer)
      except ValueError as error:
        raise ValueError(f'{where}: response {number}: {error}') from error
      if len(ids) > self.max_response_tokens:
        raise OverlongPromptError(
          f'{where}: response {number} has {len(ids)} tokens, more than '
          f'rollout.max_response_tokens = {self.max_response_tokens}; raise '
          "it, or set rollout.overlong_prompt='skip'"
        )
      found.append((recorded, ids, trained))
    return found


@dataclasses.dataclass
class RecordedSource:
  """Groups of recorded responses; made like a Collector and called like it.

  mismatched: each group gets one more row, the first response to the prompt
  before it in the batch (of pairs the chosen one), with weight 0 (KTO's
  reference point).
  """

  prompts: RecordedSet
  selector: PromptSelector | None  # None: rows are read by index only
  score: Callable
  mesh: jax.sharding.Mesh
  num_prompts: int
  mismatched: bool = False

  def __post_init__(self):
    if self.mismatched and min(self.num_prompts, len(self.prompts)) < 2:
      raise ValueError(
        f'the split {self.prompts.split!r} has one row in a batch, and the '
        'method reads the response to another prompt: it needs two'
      )

  @functools.cached_property
  def stop(self) -> Stop:
    """The end of a response: the tokenizer's end tokens."""
    return make_stop(self.prompts.tokenizer, ())

  def collect(self, draw: Draw) -> Collected:
    """See Collector.collect: one round, of which no weights sample."""
    traj, done = self.rows(draw.first_serial, draw.policy_version)
    traj, metrics = self.score(draw.params, traj, draw.method)
    return Collected(
      traj,
      metrics,
      [done],
      done.responses['length'].reshape(traj.num_prompts, -1),
    )

  def rows(
    self, first_serial: int, policy_version: int
  ) -> tuple[Trajectories, Round]:
    """The next groups, not yet scored."""
    assert self.selector is not None
    indices = self.selector.select(self.num_prompts)
    traj, examples = self.read(indices, first_serial)
    traj = traj.replace(
      policy_version_B=np.full_like(traj.policy_version_B, policy_version)
    )
    responses: dict[str, Any] = {
      'response': traj.response_BT,
      'length': traj.length_B,
      'finished': traj.finished_B,
      'logp': traj.logp_behaviour_BT,
    }
    done = Round(
      indices=indices,
      examples=examples,
      texts=_Texts(traj, self.prompts.tokenizer),
      errors=[None] * len(traj.length_B),
      reward_NG=np.where(traj.valid_B > 0, traj.reward_B, np.nan).reshape(
        traj.num_prompts, -1
      ),
      tokens=0,  # none is sampled
      responses=responses,
    )
    self._check_agreement(done)
    replicated = mesh_lib.replicated(self.mesh)
    return processes.put(traj, replicated), done

  def read(
    self, indices: np.ndarray, first_serial: int
  ) -> tuple[Trajectories, list[base.Example]]:
    """The groups (numpy) of these places in the data, and their examples."""
    examples, prompt, mask, ids = self.prompts.batch(indices)
    records = [self.prompts.responses(example) for example in examples]
    if self.mismatched:
      records = [
        [*group, before[0]]
        for group, before in zip(
          records, records[-1:] + records[:-1], strict=True
        )
      ]
    traj = recorded_rows(
      (prompt, mask, ids),
      records,
      self.prompts.max_response_tokens,
      first_serial,
      mismatched=self.mismatched,
    )
    rows = [recorded for group in records for recorded, *_ in group]
    if rows[0].step_labels:
      own = (self.prompts.tokenizer, self.prompts.max_response_tokens)
      labels = {'step_label_BT': step_labels(rows, *own)}
      traj = traj.replace(extras={**traj.extras, **labels})
    return traj, examples

  def _check_agreement(self, done: Round) -> None:
    """All processes read the same rows; carries requests to stop, too."""
    if processes.count() == 1:
      return
    rows = zlib.crc32(done.responses['response'].tobytes())
    if any(other != rows for other in processes.gather(rows)):
      raise RuntimeError(
        'the processes read different rows: is the data the same on all hosts?'
      )


def recorded_rows(
  prompts: tuple[np.ndarray, np.ndarray, np.ndarray],
  records: Sequence[
    Sequence[tuple[base.RecordedResponse, list[int], list[bool]]]
  ],
  max_response_tokens: int,
  first_serial: int = 0,
  *,
  mismatched: bool = False,
) -> Trajectories:
  """Rows (numpy) with given responses, which must fit; N groups alike.

  prompts: (tokens [N, P], mask [N, P], ids [N]). The reward of the data is the
  component `outcome` and reward_B. With mismatched the last row of each group
  has no label, and weight 0.
  """
  prompt, prompt_mask, ids = prompts
  rows = [row for group in records for row in group]
  N, G = len(records), len(records[0])
  B, T = len(rows), max_response_tokens
  response, kind = np.zeros((B, T), np.int32), np.full((B, T), PAD, np.int32)
  for b, (_, tokens, trained) in enumerate(rows):
    response[b, : len(tokens)] = tokens
    kind[b, : len(tokens)] = np.where(trained, POLICY, ENVIRONMENT)
  reward = np.asarray([recorded.reward for recorded, *_ in rows], np.float32)
  live = np.ones((N, G), np.float32)
  if mismatched:
    live[:, -1] = 0.0
  live = live.reshape(-1)
  unlabelled = beside_labels(records) * live
  length = np.asarray([len(tokens) for _, tokens, _ in rows], np.int32)
  n = np.arange(B, dtype=np.int32)
  fields: dict[str, Any] = dict(
    prompt_NP=prompt,
    prompt_mask_NP=prompt_mask,
    prompt_id_N=ids,
    group_size=G,
    response_BT=response,
    kind_BT=kind,
    length_B=length,
    finished_B=np.asarray([not recorded.truncated for recorded, *_ in rows]),
    row_id_B2=np.stack([first_serial + n // G, n % G], 1).astype(np.int32),
    policy_version_B=np.zeros(B, np.int32),
    mask_BT=(kind == POLICY).astype(np.float32),
    valid_B=live,
    weight_B=live - unlabelled,
    logp_behaviour_BT=np.zeros((B, T), np.float32),
    rewards={base.OUTCOME: reward},
    reward_B=reward,
    extras=extras_of([recorded for recorded, *_ in rows], live, mismatched),
  )
  if unlabelled.any():
    fields['extras'] |= {UNLABELLED: unlabelled}
  return Trajectories(**fields)


def beside_labels(records: Sequence[Sequence[Any]]) -> np.ndarray:
  """1 on responses without a label in groups that have one, f32 [B]."""
  found = []
  for group in records:
    labelled = [recorded.label is not None for recorded, *_ in group]
    found += [float(any(labelled) and not own) for own in labelled]
  return np.asarray(found, np.float32)


def extras_of(
  rows: Sequence[base.RecordedResponse], live: np.ndarray, mismatched: bool
) -> dict[str, np.ndarray]:
  """Returns what the data say of rows, by row_inputs.KEYS; live: weights of the
  rows.

  Labels of steps are not among them.
  """
  label = np.asarray(
    [-1 if x.label is None else x.label for x in rows], np.float32
  )
  label = np.where(live > 0, label, -1.0).astype(np.float32)
  extras = {'logged_B': np.ones(len(rows), np.float32), 'chosen_B': label}
  if not (label[live > 0] >= 0).any():  # the data have no labels
    extras.pop('chosen_B')
  if mismatched:
    extras['mismatched_B'] = np.float32(1.0) - live
  if rows[0].distance is not None:
    distances = [x.distance or 0.0 for x in rows]
    extras[_DISTANCE] = np.asarray(distances, np.float32)
  if rows[0].annotator is not None:
    annotators = [x.annotator for x in rows]
    extras['annotator_B'] = np.asarray(annotators, np.float32)
  if rows[0].aspects:
    none = row_inputs.NO_LABEL
    rated = [[none if x is None else x for x in y.aspects] for y in rows]
    extras['aspect_label_BA'] = np.asarray(rated, np.float32)
  return extras


class _Texts(Sequence):
  """The texts of recorded responses, decoded when they are asked for."""

  def __init__(self, traj: Trajectories, tokenizer: Any):
    self._rows, self._lengths = traj.response_BT, traj.length_B
    self._tokenizer = tokenizer

  def __len__(self) -> int:
    return len(self._lengths)

  def __getitem__(self, row: Any) -> str:
    ids = self._rows[row, : self._lengths[row]]
    return self._tokenizer.decode(int(i) for i in ids)
