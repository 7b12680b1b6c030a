"""Best actions where an environment of Gymnasium has a table of transitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# state -> action -> (probability, next state, reward, whether it ends) each.
Table = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


def solved(
  table: Table, steps: int, discount: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
  """(f64[S], int[S]): the best return of each state in so many steps, how.

    V_0 = 0;  Q_k(s, a) = E[r + discount V_k-1(s')],  V_k = max_a Q_k

  V is 0 after the end. The actions are those of the first of the steps, the
  lowest number among equals.
  """
  states, actions = len(table), len(table[0])
  value_S, best_S = np.zeros(states), np.zeros(states, int)
  rows: list[tuple[Any, ...]] = [
    (state, action, *outcome)
    for state in range(states)
    for action in range(actions)
    for outcome in table[state][action]
  ]
  state, action, chance, after, reward, ended = map(
    np.asarray, zip(*rows, strict=True)
  )
  for _ in range(steps):
    q_SA = np.zeros((states, actions))
    found = reward + discount * np.where(ended, 0.0, value_S[after])
    np.add.at(q_SA, (state, action), chance * found)
    value_S, best_S = q_SA.max(axis=1), q_SA.argmax(axis=1)
  return value_S, best_S
