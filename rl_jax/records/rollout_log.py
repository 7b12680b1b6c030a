"""The lines of rollouts.jsonl: a few responses of every iteration, by token.

The update computes these values anyway and returns those of the first rows of
the batch. The host reads them with the metrics of the iteration, one iteration
later, so that it does not wait for the update.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.rollouts import responses
from rl_jax.types import ENVIRONMENT, TOKENS, Metrics, Trajectories


def token_texts(tokenizer: Any, ids: Sequence[int] | np.ndarray) -> list[str]:
  """The text of every token; '' for special ones.

  A character of several tokens is the text of the last of them.
  """
  texts, held = [], []
  for i, token in enumerate(ids):
    held.append(int(token))
    text = tokenizer.decode(held)
    # UTF-8 has at most 4 bytes: a longer incomplete sequence is invalid.
    wait = text.endswith('\ufffd') and len(held) < 4 and i + 1 < len(ids)
    texts.append('' if wait else text)
    held = held if wait else []
  return texts


def sampling_metrics(rounds: Sequence[Any]) -> dict[str, float]:
  """Metrics of all generation rounds of an iteration.

  rollout/reward: mean over every sample, also of groups that were dropped
  (`reward/mean` is that of the batch); samples without a reward do not count.
  Of a mixture also rollout/reward/PART, and rollout/prompts/PART.
  """
  rewards = [reward_G for r in rounds for reward_G in r.reward_NG]
  parts: dict[str, list] = {}
  names = [name for r in rounds for name in r.parts]
  for name, reward_G in zip(names, rewards, strict=True):
    if name is not None:
      parts.setdefault(name, []).append(reward_G)
  return {
    **{f'rollout/reward/{k}': _mean(parts[k]) for k in sorted(parts)},
    **{f'rollout/prompts/{k}': len(parts[k]) for k in sorted(parts)},
    'rollout/rounds': len(rounds),
    'rollout/reward': _mean(rewards),
    'rollout/reward_errors': sum(
      error is not None for r in rounds for error in r.errors
    ),
  }


def sample_errors(rounds: Sequence[Any]) -> list[str | None]:
  """Errors of the samples of all rounds in which a sample took part.

  None: judged, or it took no part.
  """
  return [
    error
    for r in rounds
    if any(r.errors) or np.isfinite(r.reward_NG).any()
    for error in r.errors
  ]


def _mean(rewards) -> float:
  """Mean of the finite rewards, 0 if there are none."""
  rewards = np.concatenate(rewards)
  known = rewards[np.isfinite(rewards)]
  return float(known.mean()) if len(known) else 0.0


@dataclasses.dataclass(frozen=True)
class RolloutLog:
  """The logged responses of one iteration; their values are on the device."""

  rounds: list[Any]  # rounds.Round, in the order of their group serials
  first_serial: int
  arrays: Mapping[str, Any]  # on the device: see the function of that name
  prompts: int  # of the batch that are logged
  tokenizer: Any
  stop: responses.Stop  # what ends a text and is not a part of it

  def _place(self, serial: int) -> tuple[int, int]:
    """(round, group in it) of a serial; the round is below 0 if it is older."""
    first = self.rounds[0]
    if first.serials is not None:
      return 0, first.serials.tolist().index(serial)
    return divmod(serial - self.first_serial, len(first.examples))

  def lines(self, host: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per response; host: what `arrays` holds, read.

    Rows without tokens and weight are not responses, unless they have failed.
    """
    tokens, first = host.get(TOKENS), self.rounds[0]
    row_id_B2, weight_B = host['row_id'], host['weight']
    group_size = len(row_id_B2) // len(first.examples)
    if first.serials is not None:  # it may have more groups than the batch
      group_size = first.reward_NG.shape[1]
    lines, known = [], set()
    for row in range(min(self.prompts * group_size, len(row_id_B2))):
      serial, sample = map(int, row_id_B2[row])
      number, n = self._place(serial)
      empty = not (host['length'][row] or weight_B[row])
      if empty and number < 0:  # fills up a group, with the row id 0, 0
        continue
      if number < 0:  # started in an earlier iteration (rollouts.windows)
        number, n = 0, row // group_size
      if (serial, sample) in known:
        continue
      known.add((serial, sample))
      done = self.rounds[number]
      ids = host['response'][row][: host['length'][row]]
      text, end = self.stop.text(ids), self.stop.ended_by(ids)
      line = done.row(n, sample, text)
      if empty and line['error'] is None:
        continue
      more = {'ended_by': end, 'weight': float(weight_B[row])}
      observes = 'kind' in host and (host['kind'][row] == ENVIRONMENT).any()
      if (
        observes and 'turns' not in line
      ):  # as those of episodes that were played
        more['told'] = True
      lines.append(line | more)
      if tokens is not None and row < len(tokens['seen']):
        lines[-1][TOKENS] = self._tokens(tokens, row, ids)
    return lines

  def _tokens(self, tokens, row: int, ids: np.ndarray) -> dict[str, list]:
    values = {
      name: [_short(x) for x in field[row, : len(ids)]]
      for name, field in tokens.items()
      if name != 'seen'
    }
    if all(values['trained']):
      values.pop('trained')  # the usual case
    return {'text': token_texts(self.tokenizer, ids), **values}


def arrays(
  traj: Trajectories, metrics: Metrics, prompts: int, recorded: bool = False
) -> dict[str, Any]:
  """The arrays of a RolloutLog; removes TOKENS from the metrics.

  They hold the rows that are logged, whichever process has verified them.
  recorded: some are data, whose turns are not logged apart.
  """
  rows = max(0, min(prompts, traj.num_prompts)) * traj.group_size
  first = {'response': traj.response_BT, 'length': traj.length_B}
  if recorded:
    first['kind'] = traj.kind_BT
  found = {
    'row_id': traj.row_id_B2,
    'weight': traj.weight_B,
    **_first(rows, first),
  }
  tokens = metrics.pop(TOKENS, None)
  return found if tokens is None else {**found, TOKENS: tokens}


@functools.partial(jax.jit, static_argnums=0)
def _first(rows: int, tree: Any) -> Any:
  return jax.tree.map(lambda x: x[:rows], tree)


def _short(x: float) -> float:
  """Four significant digits, which halves the size of the file."""
  return float(f'{x:.4g}')
