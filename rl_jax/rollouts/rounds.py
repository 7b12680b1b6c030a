"""Generation rounds on the host, for filters, logs and metrics."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rl_jax.method import Method
from rl_jax.tasks import base
from rl_jax.types import Trajectories

# Counts and seconds; all other metrics of rounds are means over their rows.
_SUMS = frozenset(
  (
    *('episode/cut_observations', 'episode/mismatches'),
    *('episode/failed_resets', 'episode/questions'),
    *('calls/timeouts', 'calls/retries', 'calls/hedged'),
    *('time/environment_seconds', 'time/partner_seconds'),
    'rollout/waited_for',
  )
)


@dataclasses.dataclass
class Round:
  """The prompts of a round, what was sampled for them, and its rewards."""

  indices: np.ndarray  # [N] positions in the prompt set
  examples: list[Any]  # [N]
  texts: Sequence[str]  # of this process' own rows
  errors: list[str | None]  # [B]
  reward_NG: np.ndarray
  tokens: int  # newly sampled
  responses: dict[str, np.ndarray]  # see responses.fetch_responses
  shown: Callable[[int], dict] = lambda row: {}  # more of a row, for logs
  metrics: dict[str, float] = dataclasses.field(default_factory=dict)
  beats_NGG: np.ndarray | None = None  # see judges.Judges
  serials: np.ndarray | None = None  # [N] of the groups; None: consecutive

  @property
  def parts(self) -> list[str | None]:
    """[N] Part of a mixture that each example is of."""
    return [example.meta.get(base.PART) for example in self.examples]

  @property
  def taking_part(self) -> int:
    """Rows that have a reward or an error."""
    failed_B = np.array([error is not None for error in self.errors], bool)
    return int((failed_B | np.isfinite(self.reward_NG).ravel()).sum())

  def row(self, n: int, sample: int, text: str) -> dict[str, Any]:
    """Returns what is logged of one response, `text`, to the n-th prompt."""
    place = n * self.reward_NG.shape[1] + sample
    example = self.examples[n]
    return {
      'prompt_id': example.id,
      'sample': sample,
      'prompt': example.prompt,
      'response': text,
      'answer': example.answer,
      'reward': self.reward_NG[n, sample],
      'error': self.errors[place],
      **self.shown(place),
    }


class Draw(NamedTuple):
  """The inputs with which a batch is drawn.

  params: weights that score. first_serial: of its groups. policy_version: the
  optimizer step of the weights that sample. sampling_params: these; None:
  params. earlier: (weights, their optimizer steps) of updates before them.
  """

  params: Any
  method: Method
  first_serial: int
  policy_version: int
  sampling_params: Any = None
  earlier: tuple[tuple[Any, int], ...] = ()

  @property
  def weights(self) -> Any:
    """The weights that sample."""
    return self.params if self.sampling_params is None else self.sampling_params


class Collected(NamedTuple):
  """The batch of an iteration, and what is logged of it.

  traj: scored rows with rewards. metrics: of the score. rounds: of sampling.
  length_NG: of the responses in the batch, on the host.
  """

  traj: Trajectories
  metrics: dict[str, Any]
  rounds: list[Round]
  length_NG: np.ndarray


def joined(rounds: Sequence[Round]) -> Round:
  """Parts of one round, in order; `shown` is of the first."""
  first = rounds[0]
  if len(rounds) == 1:
    return first
  beats = [one.beats_NGG for one in rounds if one.beats_NGG is not None]
  return dataclasses.replace(
    first,
    indices=np.concatenate([one.indices for one in rounds]),
    examples=list(chain(*(one.examples for one in rounds))),
    texts=list(chain(*(one.texts for one in rounds))),
    errors=list(chain(*(one.errors for one in rounds))),
    reward_NG=np.concatenate([one.reward_NG for one in rounds]),
    tokens=sum(one.tokens for one in rounds),
    responses={
      name: np.concatenate([one.responses[name] for one in rounds])
      for name in first.responses
    },
    metrics=metrics_of(rounds),
    beats_NGG=np.concatenate(beats) if beats else None,
  )


def metrics_of(rounds: Sequence[Round]) -> dict[str, float]:
  """The metrics of rounds, by name, as if they had been one.

  Counts and seconds are sums, the others means over rows that took part:
  sum_r n_r x_r / sum_r n_r over the rounds r that have x. If none has such
  rows, all count alike.
  """
  names = sorted({name for one in rounds for name in one.metrics})
  return {name: _merged(name, rounds) for name in names}


def _merged(name, rounds):
  own = [one for one in rounds if name in one.metrics]
  values = [one.metrics[name] for one in own]
  if name in _SUMS or name.endswith('/count'):
    return float(sum(values))
  rows = [one.taking_part for one in own]
  weighted = len(own) > 1 and any(rows)
  return float(np.average(values, weights=rows if weighted else None))


def unsolved(reward_NG: np.ndarray, above: float) -> np.ndarray:
  """Prompts without a reward > above, bool [N]; NaN: verification failed."""
  return ~np.any(reward_NG > above, axis=1)


def total_rewards(
  components: Sequence[Mapping[str, float] | None],
  weights: Mapping[str, float],
  group_size: int,
) -> np.ndarray:
  """Weighted sums of components, [N, G]; NaN for a sample without them."""
  total = [
    np.nan if c is None else base.combine(c, weights) for c in components
  ]
  return np.asarray(total, np.float32).reshape(-1, group_size)


def reward_arrays(
  components: Sequence[Mapping[str, float] | None], weights: Mapping[str, float]
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
  """(components by name, their weighted sum, 1 where judged), each f32[B].

  A sample without components has 0.
  """
  # Also where every sample failed: rounds must have the same components.
  names = sorted({*weights, *(n for c in components if c for n in c)})
  rewards = {
    n: np.asarray([(c or {}).get(n, 0.0) for c in components], np.float32)
    for n in names
  }
  total = [0.0 if c is None else base.combine(c, weights) for c in components]
  valid = [float(c is not None) for c in components]
  return rewards, np.asarray(total, np.float32), np.asarray(valid, np.float32)
