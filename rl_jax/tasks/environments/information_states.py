"""Information states of a small game of OpenSpiel, as a policy reads them."""

from collections.abc import Mapping
import dataclasses

from rl_jax.tasks.environments.open_spiel import OpenSpiel, action_names, news


@dataclasses.dataclass(frozen=True)
class Situation:
  """The texts that a player has read and written before a decision.

  key: its information state in OpenSpiel. texts: read, written, read, ...
  names: numbers of the legal actions by what it may write.
  """

  player: int
  key: str
  texts: tuple[str, ...]
  names: Mapping[str, int]


def situations(task: OpenSpiel) -> list[Situation]:
  """Every decision that can come up, each information state once."""
  found: dict[tuple[int, str], Situation] = {}
  game = task.load()
  players = range(game.num_players())
  texts = [(f'{task.instructions}{player}',) for player in players]
  _walk(task, game.new_initial_state(), [''] * len(players), texts, found)
  return list(found.values())


def _walk(task, state, known, texts, found):
  """texts: of each player, one of even number while it reads."""
  if state.is_terminal():
    return
  if state.is_chance_node():
    for action, _ in state.chance_outcomes():
      _walk(task, state.child(action), known, texts, found)
    return
  known = list(known)
  observed = news(state, known)
  texts = [
    (*read, last + new)
    for (*read, last), new in zip(texts, observed, strict=True)
  ]
  player = state.current_player()
  key, names = state.information_state_string(player), action_names(task, state)
  found[player, key] = Situation(player, key, texts[player], names)
  for name, action in names.items():
    after, written = state.child(action), list(texts)
    written[player] = (*texts[player], name, '')
    knows = list(known)
    knows[player] = after.information_state_string(player)
    _walk(task, after, knows, written, found)


def nash_conv(
  task: OpenSpiel, probabilities: Mapping[tuple[int, str], Mapping[str, float]]
) -> float:
  """sum_p (best response value of p against the others - value of p), exact.

  probabilities: of the names of every situation, by (player, key). It is twice
  the exploitability of a game of two; 0 at an equilibrium. By OpenSpiel.
  """
  import pyspiel

  table = {
    one.key: [
      (action, float(probabilities[one.player, one.key][name]))
      for name, action in one.names.items()
    ]
    for one in situations(task)
  }
  return float(pyspiel.nash_conv(task.load(), table))
