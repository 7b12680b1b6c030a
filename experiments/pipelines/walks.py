"""Grids of KeyDoor as tables: values of actions, and the best of n draws."""

import dataclasses

import numpy as np

from rl_jax.worlds.key_door import Layout
from rl_jax.worlds.key_door_words import ACTIONS, observed


@dataclasses.dataclass(frozen=True)
class Walks:
  """The states that can be reached in a grid from the start, state 0.

  prompts: of each state, as in worlds.RecordedMoves. next_SA: states after the
  actions. goal_S: 1 at the goal, which is not left.
  """

  prompts: tuple[str, ...]
  next_SA: np.ndarray
  goal_S: np.ndarray


def walks(layout: Layout) -> Walks:
  """The walks of a grid, in the order of a breadth-first search."""
  states = [(*layout.start, 0)]
  place, rows = {states[0]: 0}, []
  for state in states:  # it grows
    done = state[:2] == layout.goal
    row = []
    for action in range(len(ACTIONS)):
      after = state if done else layout.next(state, action)
      if after not in place:
        place[after] = len(states)
        states.append(after)
      row.append(place[after])
    rows.append(row)
  return Walks(
    prompts=tuple(layout.described() + observed(state) for state in states),
    next_SA=np.array(rows),
    goal_S=np.array([float(s[:2] == layout.goal) for s in states]),
  )


def best_of_n(
  policy_SA: np.ndarray, value_SA: np.ndarray, n: int
) -> np.ndarray:
  """P(a is the best of n independent draws from the policy), f64[S, A].

    upto^n - below^n,  with the probability of values up to, or below, that of a

  Actions of equal values share theirs as they do in the policy; n = 1 is the
  policy.
  """
  more_SAA = value_SA[:, None] < value_SA[..., None]
  same_SAA = value_SA[:, None] == value_SA[..., None]
  below_SA = (more_SAA * policy_SA[:, None]).sum(-1)
  own_SA = (same_SAA * policy_SA[:, None]).sum(-1)
  share_SA = np.where(own_SA > 0, policy_SA / np.maximum(own_SA, 1e-300), 0.0)
  return share_SA * ((below_SA + own_SA) ** n - below_SA**n)


def success(grid: Walks, policy_SA: np.ndarray, turns: int) -> float:
  """P(goal within so many turns) from the start, exact."""
  value_S = grid.goal_S
  for _ in range(turns):
    after_S = (policy_SA * value_S[grid.next_SA]).sum(axis=1)
    value_S = np.maximum(grid.goal_S, after_S)
  return float(value_S[0])


def sampled_values(
  grid: Walks,
  policy_SA: np.ndarray,
  *,
  gamma: float,
  turns: int,
  samples: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Mean of gamma^k over samples of the policy after each action, f64[S, A].

  k: turns from the action to the goal; 0 is counted if there are more.
  """
  state_SAR = np.repeat(grid.next_SA[..., None], samples, axis=-1)
  sums_SA = policy_SA.cumsum(axis=1)
  sums_SA /= sums_SA[:, -1:]
  value_SAR = grid.goal_S[state_SAR]
  for turn in range(1, turns):
    drawn_SAR = rng.uniform(size=state_SAR.shape)
    action_SAR = (drawn_SAR[..., None] >= sums_SA[state_SAR]).sum(axis=-1)
    state_SAR = grid.next_SA[state_SAR, action_SAR]
    first_SAR = (value_SAR == 0) * grid.goal_S[state_SAR]
    value_SAR = value_SAR + gamma**turn * first_SAR
  return value_SAR.mean(axis=-1)
