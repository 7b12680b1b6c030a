"""Counterfactual regret minimisation over latent strategies of a small game."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl_jax.tasks.environments.information_states import situations
from rl_jax.tasks.environments.open_spiel import OpenSpiel, action_names

Key = tuple[int, str]  # player and information state of OpenSpiel


def matched(regret_Z: np.ndarray) -> np.ndarray:
  """p_z = max(R_z, 0) / sum_z' max(R_z', 0); uniform if no regret is positive.

  Source: Hart and Mas-Colell, 2000.
  """
  positive_Z = np.maximum(regret_Z, 0.0)
  total = positive_Z.sum()
  if total > 0:
    return positive_Z / total
  return np.full(len(regret_Z), 1.0 / len(regret_Z))


def average_strategies(
  task: OpenSpiel,
  latents: Sequence[Sequence[Mapping[str, float]]],
  iterations: int,
) -> dict[Key, np.ndarray]:
  """Average strategies over latents, f64[Z] of each information state.

    R_z += pi_others (v_z - sum_z' p_z' v_z'),  p = matched(R),  players in turn
    average_z = sum pi_own p_z / sum pi_own

  latents: of each player, the probabilities of moves (names as in `situations`)
  given a latent. v_z is the value of moves drawn from latent z; a player does
  not remember which latent its own moves came from. With one latent for each
  move this is CFR of the game itself.
  Source: Zinkevich et al., "Regret Minimization in Games with Incomplete
  Information", 2007, as OpenSpiel's CFRSolver.
  """
  found = situations(task)
  sizes = {(one.player, one.key): len(latents[one.player]) for one in found}
  solver = _Solver(
    task=task,
    latents=latents,
    regrets={key: np.zeros(size) for key, size in sizes.items()},
    sums={key: np.zeros(size) for key, size in sizes.items()},
    current={key: np.full(size, 1.0 / size) for key, size in sizes.items()},
  )
  game = task.load()
  for _ in range(iterations):
    for player in range(game.num_players()):
      reach_P = np.ones(game.num_players() + 1)  # chance is the last
      solver.walk(game.new_initial_state(), reach_P, player)
      for key in solver.current:
        if key[0] == player:
          solver.current[key] = matched(solver.regrets[key])
  return {key: matched(sum_Z) for key, sum_Z in solver.sums.items()}


class _Solver:
  """Regrets and sums of strategies, which a walk over the game adds to."""

  def __init__(self, *, task, latents, regrets, sums, current):
    self._task, self._latents = task, latents
    self.regrets, self.sums, self.current = regrets, sums, current

  def walk(self, state: Any, reach_P: np.ndarray, updated: int) -> np.ndarray:
    """Expected returns of the players; adds to what `updated` has."""
    if state.is_terminal():
      return np.array(state.returns())
    if state.is_chance_node():
      outcomes = state.chance_outcomes()
      parts = (
        chance
        * self.walk(state.child(action), _with(reach_P, -1, chance), updated)
        for action, chance in outcomes
      )
      return sum(parts, np.zeros(self._task.players))
    mover = state.current_player()
    key = mover, state.information_state_string(mover)
    names = action_names(self._task, state)
    moves_ZM = np.array(
      [[z.get(name, 0.0) for name in names] for z in self._latents[mover]]
    )
    chosen_Z = self.current[key]
    chance_M = chosen_Z @ moves_ZM
    value_MP = np.array(
      [
        self.walk(state.child(action), _with(reach_P, mover, chance), updated)
        for action, chance in zip(names.values(), chance_M, strict=True)
      ]
    )
    value_P = chance_M @ value_MP
    if mover == updated:
      others = np.prod(np.delete(reach_P, mover))
      value_Z = moves_ZM @ value_MP[:, mover]
      self.regrets[key] += others * (value_Z - value_P[mover])
      self.sums[key] += reach_P[mover] * chosen_Z
    return value_P


def _with(reach_P, place, chance):
  reach_P = reach_P.copy()
  reach_P[place] *= chance
  return reach_P
