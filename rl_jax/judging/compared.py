"""Groups of policy and opponent, for judges that compare responses.

Each side is sampled and verified by itself; what compares responses waits until
both are there, or a response would be compared only with those of its side.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from rl_jax.judging.judges import Judges
from rl_jax.pieces.ops.rivals import BEATS
from rl_jax.rollouts.rounds import Round
from rl_jax.verification.pool import Outcome


@dataclasses.dataclass(frozen=True)
class Side:
  """Rows of one policy, G a prompt.

  outcomes: of all rows, without judges that compare. said: of this process' own
  rows, as judges read them.
  """

  outcomes: Sequence[Outcome]
  said: Sequence[Any]


def both(own: Sequence[Any], other: Sequence[Any], size: int) -> list[Any]:
  """Interleaves, for every prompt, `size` rows of one, then of the other."""
  found = []
  for start in range(0, len(own), size):
    rows = range(start, start + size)
    found += [side[row] for side in (own, other) for row in rows]
  return found


def judged(
  judges: Judges, sides: Sequence[Side], rounds: Sequence[Round], kind: str
) -> dict[str, np.ndarray]:
  """Scores of the joined groups, [B] by the name of the judge.

  NaN for rows without an outcome. With a judge of pairs BEATS, too. The rounds
  of both sides get the rewards, errors and metrics. kind: see ops.rivals.
  """
  if not judges.compares:
    return {}
  (own, other), G = sides, rounds[0].reward_NG.shape[1]
  found = judges.compare(
    both(own.outcomes, other.outcomes, G),
    rounds[0].examples,
    both(own.said, other.said, G),
    2 * G,
    kind,
  )
  components = [outcome.components or {} for outcome in found]
  scores = {
    name: np.asarray([c.get(name, np.nan) for c in components], np.float32)
    for name in judges.compares
  }
  if judges.beats_NGG is not None:
    scores[BEATS] = judges.beats_NGG.reshape(-1, 2 * G)
  _update(rounds, judges, found, scores)
  return scores


def _update(rounds, judges, outcomes, scores):
  """Rewards and errors of both sides; `scores` are not yet in the rewards."""
  N, G = rounds[0].reward_NG.shape
  added_B = sum(
    (judges.weights[name] * scores[name] for name in judges.compares),
    start=np.zeros((), np.float32),
  )
  for side, done in enumerate(rounds):
    done.reward_NG += added_B.reshape(N, 2, G)[:, side]
    mine = [
      outcomes[(2 * n + side) * G + g] for n in range(N) for g in range(G)
    ]
    done.errors = [outcome.error for outcome in mine]
  rounds[-1].metrics |= judges.metrics()
